// Batches cut into micro-batches that overlap computation and communication (vLLM's ubatching).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attn/derived_batches.h"
#include "attn/metadata.h"

namespace attn {

// Rows [first_row, past_row) and tokens [first_token, past_token). The first and the last row may
// be there in part.
struct UBatchSlice {
  std::int32_t first_row = 0;
  std::int32_t past_row = 0;
  std::int32_t first_token = 0;
  std::int32_t past_token = 0;

  bool operator==(const UBatchSlice&) const = default;
};

struct UBatchSlices {
  std::vector<UBatchSlice> slices;
  std::vector<UBatchSlice> padded;  // the same, the last one with all padding rows and tokens
};

// Cuts at `split_points` (tokens, ascending), or else evenly at num_tokens_padded / num_ubatches.
// Throws VllmError AssertionError when the padded slices have not num_tokens_padded tokens, Error
// for a negative query length, for num_ubatches < 1 and for points below 0.
UBatchSlices create_ubatch_slices(std::span<const std::int32_t> query_lens,
                                  std::int32_t num_tokens_padded, std::int32_t num_reqs_padded,
                                  std::int32_t num_ubatches,
                                  const std::optional<std::vector<std::int32_t>>& split_points);

// Would the last of `num_ubatches` be padding only?
bool is_last_ubatch_empty(std::int32_t num_tokens, std::int32_t num_tokens_padded,
                          std::int32_t num_ubatches);

// One slice as a batch. Throws VllmError AssertionError for a slice that is empty or starts outside
// its first row, and without seq_lens_cpu_upper_bound; Error for a slice outside the batch.
//
// Faithful: image ranges move with their rows, causal flags, request indices, R-SWA prefixes and
// encoder lengths are kept. Error for a row that is cut at its end although a token before the cut
// sees keys behind it on a layer without a window (in an image, or without causality), or that has
// context parallel lengths.
CommonAttentionMetadata split_batch(const UBatchSlice& slice, const CommonAttentionMetadata& batch,
                                    Derivation derivation);

}  // namespace attn
