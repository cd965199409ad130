#include "attn/decode_split.h"

#include <fmt/core.h>

#include <algorithm>

#include "attn/error.h"
#include "attn/vllm_error.h"
#include "composite/row_fields.h"

namespace attn {
namespace {

bool is_prefill(const CommonAttentionMetadata& batch, std::int32_t row,
                const DecodeSplitOptions& options) {
  const std::int32_t query_len = batch.query_len(row);
  const bool too_long = options.require_uniform ? query_len != batch.query_len(0) && query_len != 0
                                                : query_len > options.decode_threshold;
  if (too_long || options.treat_short_extends_as_decodes) return too_long;
  return batch.is_prefilling && (*batch.is_prefilling)[index_of(row)];
}

// The rows of the query lengths and bounds that the split by context reads.
struct Lengths {
  std::span<const std::int32_t> query_start_loc;
  std::span<const std::int32_t> seq_lens;
  std::int32_t num_actual_tokens;

  std::int32_t num_reqs() const { return static_cast<std::int32_t>(query_start_loc.size()) - 1; }
  std::int32_t query_len(std::int32_t row) const {
    return query_start_loc[index_of(row) + 1] - query_start_loc[index_of(row)];
  }
};

ExtendSplit split_long_rows(const Lengths& rows, std::int32_t decode_threshold) {
  const std::int32_t n = rows.num_reqs();
  std::int32_t extend = n;
  std::int32_t prefill = n;
  for (std::int32_t row = n - 1; row >= 0; --row) {
    if (rows.query_len(row) <= decode_threshold) continue;
    extend = row;
    if (rows.query_len(row) == rows.seq_lens[index_of(row)]) prefill = row;
  }
  if (extend == n) return {};  // vLLM's argmax over no long row is row 0
  const std::int32_t tokens = rows.num_actual_tokens;
  const std::int32_t decode_tokens = rows.query_start_loc[index_of(extend)];
  const std::int32_t prefill_tokens =
      prefill == n ? 0 : tokens - rows.query_start_loc[index_of(prefill)];
  return {.num_decodes = extend,
          .num_extends = prefill - extend,
          .num_prefills = n - prefill,
          .num_decode_tokens = decode_tokens,
          .num_extend_tokens = tokens - decode_tokens - prefill_tokens,
          .num_prefill_tokens = prefill_tokens};
}

void expect_context(std::span<const std::int32_t> starts, std::size_t num_bounds,
                    std::int32_t num_actual_tokens) {
  if (starts.empty() || starts.front() != 0 || !std::is_sorted(starts.begin(), starts.end())) {
    throw Error("query_start_loc must start with 0 and never decrease");
  }
  if (num_actual_tokens < starts.back()) {
    throw Error(fmt::format("num_actual_tokens is {}, query_start_loc[{}] is {}", num_actual_tokens,
                            starts.size() - 1, starts.back()));
  }
  if (num_bounds != starts.size() - 1) {
    throw Error(fmt::format("seq_lens_cpu_upper_bound has {} entries, must have {}", num_bounds,
                            starts.size() - 1));
  }
}

}  // namespace

DecodeSplit split_decodes_and_prefills(const CommonAttentionMetadata& batch,
                                       const DecodeSplitOptions& options) {
  validate_sizes(batch);
  const std::int32_t n = batch.num_reqs;
  const std::int32_t tokens = batch.num_actual_tokens;
  const DecodeSplit all_decodes = {n, 0, tokens, 0};
  if (batch.max_query_len <= options.decode_threshold &&
      (!options.require_uniform || options.decode_threshold <= 1) &&
      options.treat_short_extends_as_decodes) {
    return all_decodes;
  }
  if (n > 0 && batch.query_len(0) > options.decode_threshold) return {0, n, 0, tokens};
  if (!options.treat_short_extends_as_decodes && !batch.is_prefilling) {
    throw VllmError("AssertionError", "is_prefilling is missing");
  }
  for (std::int32_t row = 0; row < n; ++row) {
    if (!is_prefill(batch, row, options)) continue;
    const std::int32_t decode_tokens = batch.query_start_loc_cpu[index_of(row)];
    return {row, n - row, decode_tokens, tokens - decode_tokens};
  }
  return all_decodes;
}

ExtendSplit split_decodes_prefills_and_extends(const CommonAttentionMetadata& batch,
                                               std::int32_t decode_threshold) {
  validate_sizes(batch);
  if (batch.max_query_len <= decode_threshold) {
    return {.num_decodes = batch.num_reqs, .num_decode_tokens = batch.num_actual_tokens};
  }
  if (!batch.seq_lens_cpu_upper_bound) {
    throw VllmError("AssertionError", "seq_lens_cpu_upper_bound is missing");
  }
  return split_long_rows(
      {batch.query_start_loc_cpu, *batch.seq_lens_cpu_upper_bound, batch.num_actual_tokens},
      decode_threshold);
}

ContextSplit split_dcp_context_queries(
    std::span<const std::int32_t> query_start_loc,
    const std::optional<std::vector<std::int32_t>>& seq_lens_cpu_upper_bound,
    std::int32_t max_query_len, std::int32_t num_actual_tokens) {
  const std::size_t num_bounds =
      seq_lens_cpu_upper_bound ? seq_lens_cpu_upper_bound->size() : query_start_loc.size() - 1;
  expect_context(query_start_loc, num_bounds, num_actual_tokens);
  const auto n = static_cast<std::int32_t>(query_start_loc.size()) - 1;
  if (max_query_len <= 1) return {n, 0, num_actual_tokens, 0};
  if (!seq_lens_cpu_upper_bound) return {0, n, 0, num_actual_tokens};
  const ExtendSplit split =
      split_long_rows({query_start_loc, *seq_lens_cpu_upper_bound, num_actual_tokens}, 1);
  return {split.num_decodes, split.num_extends, split.num_decode_tokens, split.num_extend_tokens};
}

std::vector<RowRange> split_prefill_chunks(std::span<const std::int32_t> seq_lens,
                                           std::int64_t workspace_size,
                                           std::int64_t request_offset) {
  std::vector<RowRange> chunks;
  std::int64_t filled = 0;
  for (std::size_t row = 0; row < seq_lens.size(); ++row) {
    const std::int64_t length = seq_lens[row];
    if (length > workspace_size) {
      throw VllmError("AssertionError", fmt::format("seq_lens[{}] is {}, workspace_size is {}", row,
                                                    length, workspace_size));
    }
    const std::int64_t index = request_offset + static_cast<std::int64_t>(row);
    if (chunks.empty() || filled + length > workspace_size) {
      chunks.push_back({index, index});
      filled = 0;
    }
    filled += length;
    chunks.back().past = index + 1;
  }
  return chunks;
}

bool is_uniform_decode(std::int32_t num_reqs, std::int32_t num_tokens, std::int32_t max_query_len) {
  return num_reqs > 0 && num_tokens == std::int64_t{max_query_len} * num_reqs;
}

std::optional<std::int32_t> uniform_token_count(std::int32_t num_reqs, std::int32_t num_tokens,
                                                std::int32_t max_query_len,
                                                bool decode_graph_eligible) {
  if (!decode_graph_eligible || !is_uniform_decode(num_reqs, num_tokens, max_query_len)) {
    return std::nullopt;
  }
  return max_query_len;
}

}  // namespace attn
