#include "attn/builder_group.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "attn/error.h"
#include "core/checks.h"

namespace attn {
namespace {

constexpr std::int64_t kColumnAlignment = 128;
constexpr int kMaxDraftTokens = 1 << 20;
constexpr std::int64_t kMaxTableEntries = std::int64_t{1} << 28;

std::int64_t blocks_per_framework_block(int block_size, int kernel_block_size) {
  checks::expect_at_least("block_size", block_size, 1);
  checks::expect_at_least("kernel_block_size", kernel_block_size, 1);
  if (block_size % kernel_block_size != 0) {
    throw Error(fmt::format("kernel_block_size {} does not divide block_size {}", kernel_block_size,
                            block_size));
  }
  return block_size / kernel_block_size;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// In framework blocks.
std::int64_t table_width(const BuilderGroup& group) {
  const std::int64_t tokens = std::int64_t{group.block_size} * group.decode_context_parallel_size;
  const std::int64_t step = kColumnAlignment / std::gcd(kColumnAlignment, group.block_size);
  return ceil_div(ceil_div(group.max_model_len, tokens), step) * step;
}

}  // namespace

BlockTable kernel_block_table(const BlockTable& table, int block_size, int kernel_block_size,
                              int kernel_block_stride) {
  const std::int64_t ratio = blocks_per_framework_block(block_size, kernel_block_size);
  if (kernel_block_stride < 0) {
    throw Error(fmt::format("kernel_block_stride is {}, must be at least 0", kernel_block_stride));
  }
  if (ratio == 1) return table;
  if (static_cast<std::int64_t>(table.entries.size()) > kMaxTableEntries / ratio) {
    throw Error(
        fmt::format("{} entries of {} kernel blocks are too many", table.entries.size(), ratio));
  }
  const std::int64_t stride = kernel_block_stride == 0 ? ratio : kernel_block_stride;
  BlockTable kernel{table.width * ratio, {}};
  kernel.entries.reserve(table.entries.size() * static_cast<std::size_t>(ratio));
  for (const std::int32_t block : table.entries) {
    const std::int64_t first = block * stride;
    if (first < std::numeric_limits<std::int32_t>::min() ||
        first + ratio - 1 > std::numeric_limits<std::int32_t>::max()) {
      throw Error(
          fmt::format("block {} times {} kernel blocks does not fit an i32", block, stride));
    }
    for (std::int64_t j = 0; j < ratio; ++j) {
      kernel.entries.push_back(static_cast<std::int32_t>(first + j));
    }
  }
  return kernel;
}

int max_decode_query_len(const SpeculativeDecoding& speculative, bool use_v2_model_runner) {
  if (!speculative.configured || !speculative.num_tokens) return 1;
  if (*speculative.num_tokens < 0 || *speculative.num_tokens > kMaxDraftTokens) {
    throw Error(fmt::format("num_speculative_tokens is {}, must be in [0, {}]",
                            *speculative.num_tokens, kMaxDraftTokens));
  }
  const int drafts = speculative.parallel_drafting && !use_v2_model_runner ? 2 : 1;
  return 1 + drafts * *speculative.num_tokens;
}

std::optional<int> reorder_threshold(const ReorderRequest& request) {
  std::optional<int> threshold = request.wanted;
  if (threshold && request.supports_spec_as_decode && request.speculative.configured &&
      request.speculative.num_tokens) {
    threshold = std::max(*threshold,
                         max_decode_query_len(request.speculative, request.use_v2_model_runner));
  }
  if (request.decode_context_parallel_size > 1 && !request.supports_dcp_with_varlen) return 1;
  return threshold;
}

std::optional<int> common_reorder_threshold(std::span<const std::optional<int>> of_groups) {
  std::optional<int> least;
  for (const std::optional<int>& one : of_groups) {
    if (one && (!least || *one < *least)) least = one;
  }
  return least;
}

BuilderPlan plan_builders(const BuilderGroup& group) {
  checks::expect_at_least("block_size", group.block_size, 1);
  checks::expect_at_least("decode_context_parallel_size", group.decode_context_parallel_size, 1);
  checks::expect_at_least("max_model_len", group.max_model_len, 1);
  checks::expect_at_least("max_num_seqs", group.max_num_seqs, 1);
  checks::expect_at_least("num_metadata_builders", group.num_metadata_builders, 1);
  BuilderPlan plan;
  plan.builder_block_size = group.block_size;
  std::int64_t width = table_width(group);
  if (group.group_kernel_block_size) {
    plan.builder_block_size =
        select_common_block_size(*group.group_kernel_block_size, std::span(&group.backend, 1));
    width *= blocks_per_framework_block(group.block_size, plan.builder_block_size);
  }
  if (group.requires_block_table_width) plan.block_table_width = width;
  if (plan.builder_block_size != group.block_size) {
    plan.kernel_block_size = plan.builder_block_size;
    plan.kernel_block_table_shape = {group.num_metadata_builders, group.max_num_seqs, width};
  }
  return plan;
}

}  // namespace attn
