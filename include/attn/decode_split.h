// How many rows at the front of a batch are decodes, and in which pieces prefills fit a workspace.
// Like vLLM's functions of the same names, for batches whose rows are in that order. Each throws
// Error when the sizes of the batch do not fit (validate_sizes).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attn/metadata.h"

namespace attn {

struct DecodeSplit {
  std::int32_t num_decodes = 0;
  std::int32_t num_prefills = 0;
  std::int32_t num_decode_tokens = 0;
  std::int32_t num_prefill_tokens = 0;

  bool operator==(const DecodeSplit&) const = default;
};

struct DecodeSplitOptions {
  std::int32_t decode_threshold = 1;           // the longest query that counts as a decode
  bool require_uniform = false;                // decodes must be as long as the first row
  bool treat_short_extends_as_decodes = true;  // else rows that are prefilling are prefills
};

// Throws VllmError AssertionError when is_prefilling is needed and missing.
DecodeSplit split_decodes_and_prefills(const CommonAttentionMetadata& batch,
                                       const DecodeSplitOptions& options);

struct ExtendSplit {
  std::int32_t num_decodes = 0;
  std::int32_t num_extends = 0;  // longer than a decode, with context
  std::int32_t num_prefills = 0;
  std::int32_t num_decode_tokens = 0;
  std::int32_t num_extend_tokens = 0;
  std::int32_t num_prefill_tokens = 0;

  bool operator==(const ExtendSplit&) const = default;
};

// max_query_len must be exact: when it says that there are rows beyond the threshold and there are
// none, the answer is all zeros, as in vLLM. Throws VllmError AssertionError when
// seq_lens_cpu_upper_bound is needed and missing.
ExtendSplit split_decodes_prefills_and_extends(const CommonAttentionMetadata& batch,
                                               std::int32_t decode_threshold);

struct ContextSplit {
  std::int32_t num_decodes = 0;
  std::int32_t num_extends = 0;
  std::int32_t num_decode_tokens = 0;
  std::int32_t num_extend_tokens = 0;

  bool operator==(const ContextSplit&) const = default;
};

// The queries of context attention under decode context parallelism; without a bound all rows are
// extends. query_start_loc [n + 1], seq_lens_cpu_upper_bound [n].
ContextSplit split_dcp_context_queries(
    std::span<const std::int32_t> query_start_loc,
    const std::optional<std::vector<std::int32_t>>& seq_lens_cpu_upper_bound,
    std::int32_t max_query_len, std::int32_t num_actual_tokens);

// Rows [first, past) whose lengths fit a workspace together.
struct RowRange {
  std::int64_t first = 0;
  std::int64_t past = 0;

  bool operator==(const RowRange&) const = default;
};

// Every chunk is as long as it can be; request_offset is added to all rows. Throws VllmError
// AssertionError for a length beyond workspace_size.
std::vector<RowRange> split_prefill_chunks(std::span<const std::int32_t> seq_lens,
                                           std::int64_t workspace_size,
                                           std::int64_t request_offset);

// Are there rows, all of one length?
bool is_uniform_decode(std::int32_t num_reqs, std::int32_t num_tokens, std::int32_t max_query_len);

// That length, when a decode graph may be used.
std::optional<std::int32_t> uniform_token_count(std::int32_t num_reqs, std::int32_t num_tokens,
                                                std::int32_t max_query_len,
                                                bool decode_graph_eligible);

}  // namespace attn
