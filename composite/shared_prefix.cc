#include "attn/shared_prefix.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "attn/error.h"

namespace attn {
namespace {

struct ShortestContext {
  std::int32_t row = -1;
  std::int64_t length = std::numeric_limits<std::int64_t>::max();
};

ShortestContext shortest_context(const CommonAttentionMetadata& batch) {
  ShortestContext shortest;
  for (std::int32_t row = 0; row < batch.num_reqs; ++row) {
    if (batch.query_len(row) == 0) continue;
    const std::int64_t context_len =
        std::int64_t{batch.seq_lens[static_cast<std::size_t>(row)]} - batch.query_len(row);
    if (context_len < shortest.length) shortest = {row, context_len};
  }
  return shortest;
}

std::int64_t common_columns(const CommonAttentionMetadata& batch, std::int32_t first_row) {
  const std::span<const std::int32_t> first = batch.block_table.row(first_row);
  std::ptrdiff_t columns = std::ssize(first);
  for (std::int32_t row = first_row + 1; row < batch.num_reqs; ++row) {
    if (batch.query_len(row) == 0) continue;
    const std::span<const std::int32_t> other = batch.block_table.row(row);
    columns =
        std::mismatch(first.begin(), first.begin() + columns, other.begin()).first - first.begin();
  }
  return columns;
}

std::int32_t first_real_row(const CommonAttentionMetadata& batch) {
  std::int32_t row = 0;
  while (row < batch.num_reqs && batch.query_len(row) == 0) ++row;
  return row;
}

bool has_image(const CommonAttentionMetadata& batch) {
  const auto shows = [](const ImageRange& range) { return range.start < range.end; };
  return batch.mm_req_doc_ranges &&
         std::any_of(batch.mm_req_doc_ranges->begin(), batch.mm_req_doc_ranges->end(),
                     [&](const RowImages& row) {
                       return std::any_of(row.ranges.begin(), row.ranges.end(), shows);
                     });
}

}  // namespace

std::int64_t shared_prefix_len(const CommonAttentionMetadata& batch, std::int32_t block_size) {
  validate_sizes(batch);
  if (block_size < 1) throw Error(fmt::format("block_size is {}, must be at least 1", block_size));
  const std::int32_t first_row = first_real_row(batch);
  if (first_row == batch.num_reqs) return 0;
  const std::int64_t whole_blocks =
      std::max<std::int64_t>(shortest_context(batch).length, 0) / block_size;
  return std::min(common_columns(batch, first_row), whole_blocks) * block_size;
}

std::optional<std::string> cascade_refusal(const CommonAttentionMetadata& batch,
                                           std::int64_t prefix_len, const CascadeLayers& layers) {
  validate_sizes(batch);
  if (prefix_len <= 0) return "no common prefix";
  if (layers.sliding_window) return "sliding window";
  if (layers.alibi) return "ALiBi";
  if (layers.dcp_size > 1) return fmt::format("decode context parallel size {}", layers.dcp_size);
  if (batch.rswa_prefix_lens) return "R-SWA";
  if (has_image(batch)) return "image ranges";
  const ShortestContext shortest = shortest_context(batch);
  if (shortest.row >= 0 && prefix_len > shortest.length) {
    return fmt::format("common prefix {} is longer than the context of row {}, {}", prefix_len,
                       shortest.row, shortest.length);
  }
  return std::nullopt;
}

}  // namespace attn
