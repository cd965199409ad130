#include "attn/ubatch.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "attn/error.h"
#include "attn/vllm_error.h"
#include "composite/row_fields.h"
#include "core/checks.h"

namespace attn {
namespace {

using Batch = CommonAttentionMetadata;
using Starts = std::vector<std::int32_t>;

Starts starts_of(std::span<const std::int32_t> query_lens) {
  Starts starts = {0};
  for (std::size_t row = 0; row < query_lens.size(); ++row) {
    const std::int64_t next = std::int64_t{starts.back()} + query_lens[row];
    if (query_lens[row] < 0 || next > std::numeric_limits<std::int32_t>::max()) {
      throw Error(fmt::format("query_lens[{}] is {}", row, query_lens[row]));
    }
    starts.push_back(static_cast<std::int32_t>(next));
  }
  return starts;
}

// The last row whose start is at most `first_token`, and the first start at or behind `past_token`:
// both as indices of `starts`.
UBatchSlice slice_of(const Starts& starts, std::int32_t first_token, std::int32_t past_token) {
  const auto first = std::upper_bound(starts.begin(), starts.end(), first_token);
  const auto past = std::lower_bound(starts.begin(), starts.end(), past_token);
  return {static_cast<std::int32_t>(first - starts.begin()) - 1,
          static_cast<std::int32_t>(past - starts.begin()), first_token, past_token};
}

Starts points_of(std::int32_t num_tokens, std::int32_t num_tokens_padded, std::int32_t num_ubatches,
                 const std::optional<std::vector<std::int32_t>>& split_points) {
  Starts points = {0};
  if (split_points) {
    points.insert(points.end(), split_points->begin(), split_points->end());
  } else {
    for (std::int32_t i = 1; i < num_ubatches; ++i) {
      points.push_back(num_tokens_padded / num_ubatches * i);
    }
  }
  points.push_back(num_tokens);
  for (const std::int32_t point : points) checks::expect_at_least("a split point", point, 0);
  return points;
}

// The row of `slice` that is cut at its end keeps `num_keys` of them.
void expect_cut_unseen(const Batch& batch, std::int32_t row, std::int32_t num_keys) {
  const bool causal = batch.causal_per_req ? (*batch.causal_per_req)[index_of(row)] : batch.causal;
  if (!causal) {
    throw Error(fmt::format("row {} is not causal and is cut: its first part sees its last", row));
  }
  if (batch.dcp_local_seq_lens || batch.dcp_local_seq_lens_cpu_upper_bound) {
    throw Error(fmt::format("row {} is cut, and dcp_local_seq_lens knows its whole length", row));
  }
  if (!batch.mm_req_doc_ranges) return;
  for (const RowImages& images : *batch.mm_req_doc_ranges) {
    for (const ImageRange range : images.ranges) {
      // The last token before the cut is in the slice.
      if (images.row == row && range.start < num_keys && range.end >= num_keys &&
          range.start < range.end) {
        throw Error(
            fmt::format("mm_req_doc_ranges of row {} holds [{}, {}], which is cut at position {}",
                        row, range.start, range.end, num_keys));
      }
    }
  }
}

void expect_slice(const UBatchSlice& slice, const Batch& batch) {
  if (slice.first_row == slice.past_row || slice.first_token == slice.past_token) {
    throw VllmError(
        "AssertionError",
        fmt::format("Ubatch slice UBatchSlice(request_slice=slice({}, {}, None), "
                    "token_slice=slice({}, {}, None)) is empty",
                    slice.first_row, slice.past_row, slice.first_token, slice.past_token));
  }
  if (slice.first_row < 0 || slice.past_row < slice.first_row || slice.past_row > batch.num_reqs) {
    throw Error(fmt::format("rows [{}, {}) of a slice are outside the {} of the batch",
                            slice.first_row, slice.past_row, batch.num_reqs));
  }
  if (slice.first_token < 0 || slice.past_token < slice.first_token ||
      slice.past_token > batch.num_actual_tokens) {
    throw Error(fmt::format("tokens [{}, {}) of a slice are outside the {} of the batch",
                            slice.first_token, slice.past_token, batch.num_actual_tokens));
  }
  if (slice.past_token < batch.query_start_loc_cpu[index_of(slice.past_row) - 1]) {
    throw Error(fmt::format("tokens [{}, {}) of a slice end before its row {}", slice.first_token,
                            slice.past_token, slice.past_row - 1));
  }
  if (slice.first_token < batch.query_start_loc_cpu[index_of(slice.first_row)] ||
      slice.first_token >= batch.query_start_loc_cpu[index_of(slice.first_row) + 1]) {
    throw VllmError("AssertionError", "Token slice start outside of first request");
  }
}

// query_start_loc of a slice: `skipped` tokens of its first row and `cut` of its last are not
// there.
Starts part_of(const Starts& starts, const UBatchSlice& slice, std::int32_t skipped,
               std::int32_t cut) {
  Starts part = {0};
  for (std::int32_t row = slice.first_row; row < slice.past_row; ++row) {
    part.push_back(starts[index_of(row) + 1] - starts[index_of(slice.first_row)] - skipped);
  }
  part.back() -= cut;
  return part;
}

void drop_what_vllm_drops(Batch& part) {
  part.causal = true;
  part.causal_per_req.reset();
  part.is_prefilling.reset();
  part.mm_req_doc_ranges.reset();
  part.encoder_seq_lens.reset();
  part.encoder_seq_lens_cpu.reset();
  part.dcp_local_seq_lens.reset();
  part.dcp_local_seq_lens_cpu_upper_bound.reset();
  part.req_idx.reset();
  part.rswa_prefix_lens.reset();
}

}  // namespace

UBatchSlices create_ubatch_slices(std::span<const std::int32_t> query_lens,
                                  std::int32_t num_tokens_padded, std::int32_t num_reqs_padded,
                                  std::int32_t num_ubatches,
                                  const std::optional<std::vector<std::int32_t>>& split_points) {
  checks::expect_at_least("num_ubatches", num_ubatches, 1);
  checks::expect_at_least("num_tokens_padded", num_tokens_padded, 0);
  const Starts starts = starts_of(query_lens);
  const Starts points = points_of(starts.back(), num_tokens_padded, num_ubatches, split_points);
  UBatchSlices result;
  for (std::size_t i = 1; i < points.size(); ++i) {
    result.slices.push_back(slice_of(starts, points[i - 1], points[i]));
  }
  result.padded = result.slices;
  result.padded.back().past_row = num_reqs_padded;
  result.padded.back().past_token = num_tokens_padded;
  std::int64_t num_tokens = 0;
  for (const UBatchSlice& slice : result.padded) {
    num_tokens += std::int64_t{slice.past_token} - slice.first_token;
  }
  if (num_tokens != num_tokens_padded) {
    throw VllmError("AssertionError",
                    fmt::format("the slices have {} tokens, num_tokens_padded is {}", num_tokens,
                                num_tokens_padded));
  }
  return result;
}

bool is_last_ubatch_empty(std::int32_t num_tokens, std::int32_t num_tokens_padded,
                          std::int32_t num_ubatches) {
  checks::expect_at_least("num_ubatches", num_ubatches, 1);
  return std::int64_t{num_tokens_padded / num_ubatches} * (num_ubatches - 1) >= num_tokens;
}

Batch split_batch(const UBatchSlice& slice, const Batch& batch, Derivation derivation) {
  validate_sizes(batch);
  expect_slice(slice, batch);
  const Starts& starts = batch.query_start_loc_cpu;
  const std::int32_t last = slice.past_row - 1;
  const std::int32_t skipped = slice.first_token - starts[index_of(slice.first_row)];
  const std::int32_t cut = std::max(starts[index_of(slice.past_row)] - slice.past_token, 0);
  Batch part = sliced_rows(batch, slice.first_row, slice.past_row);
  part.seq_lens.back() -= cut;
  if (!part.seq_lens_cpu_upper_bound) {
    throw VllmError("AssertionError", "seq_lens_cpu_upper_bound is missing");
  }
  part.seq_lens_cpu_upper_bound->back() -= cut;
  part.query_start_loc = part_of(batch.query_start_loc, slice, skipped, cut);
  part.query_start_loc_cpu = part_of(starts, slice, skipped, cut);
  part.num_actual_tokens = slice.past_token - slice.first_token;
  for (std::int32_t row = 0; row < part.num_reqs; ++row) {
    part.max_query_len = std::max(part.max_query_len, part.query_len(row));
  }
  part.max_seq_len = std::max(*std::max_element(part.seq_lens_cpu_upper_bound->begin(),
                                                part.seq_lens_cpu_upper_bound->end()),
                              batch.max_seq_len);
  part.slot_mapping = {batch.slot_mapping.begin() + slice.first_token,
                       batch.slot_mapping.begin() + slice.past_token};
  if (batch.positions) {
    part.positions = std::vector(batch.positions->begin() + slice.first_token,
                                 batch.positions->begin() + slice.past_token);
  }
  if (derivation == Derivation::kVllm) {
    drop_what_vllm_drops(part);
  } else if (cut > 0) {
    expect_cut_unseen(batch, last, part.seq_lens.back());
  }
  return part;
}

}  // namespace attn
