#include "selector/composite_description.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <tuple>

#include "attn/vllm_error.h"
#include "selector/combination_rules.h"

namespace attn {
namespace {

HeadSizes common_heads(const std::optional<std::vector<int>>& wanted, const HeadSizes& a,
                       const HeadSizes& b) {
  HeadSizes both;
  both.declared = wanted.value_or(std::vector<int>{});
  both.min = std::max(a.min, b.min);
  both.max = std::min(a.max, b.max);
  both.multiple_of = std::lcm(a.multiple_of, b.multiple_of);
  if (!wanted && a.only.empty() && b.only.empty()) return both;
  const std::vector<int>& list = wanted ? *wanted : (a.only.empty() ? b.only : a.only);
  std::copy_if(list.begin(), list.end(), std::back_inserter(both.only),
               [&](int size) { return a.allow(size) && b.allow(size); });
  if (both.only.empty()) std::tie(both.min, both.max) = std::pair(1, 0);  // nothing at all
  return both;
}

std::vector<DType> common_dtypes(const DescribedBackend& a, const DescribedBackend& b) {
  std::vector<DType> both;
  std::copy_if(a.dtypes.begin(), a.dtypes.end(), std::back_inserter(both), [&](DType dtype) {
    return std::find(b.dtypes.begin(), b.dtypes.end(), dtype) != b.dtypes.end();
  });
  return both;
}

}  // namespace

DescribedBackend describe_composite(const CompositeDescription& asked,
                                    const DescribedBackend& general,
                                    const DescribedBackend& causal) {
  if (general.update_in_forward || causal.update_in_forward) {
    throw VllmError("ValueError", "Composite backends require separate KV cache updates");
  }
  DescribedBackend both;
  both.name = asked.name;
  both.heads = common_heads(asked.head_sizes, general.heads, causal.heads);
  both.declared_dtypes = both.dtypes;
  both.dtypes = common_dtypes(general, causal);
  both.kv.accepted = general.kv.accepted.common_with(causal.kv.accepted);
  both.blocks.sizes =
      composite_block_sizes(general.blocks.sizes, causal.blocks.sizes, asked.kernel_block_sizes);
  both.blocks.empty_refuses = true;
  both.capability = asked.on_its_device && general.capability && causal.capability;
  both.mm_prefix = general.mm_prefix;
  both.sliding_window = general.sliding_window && causal.sliding_window;
  both.rswa = general.rswa && causal.rswa;
  both.query_lens_mismatch = false;
  both.layouts = common_cache_layouts(std::array{general.layouts, causal.layouts});
  both.combination = rules_of_children({general.name, general.combination, true},
                                       {causal.name, causal.combination, false});
  both.update_in_forward = false;
  both.graph = GraphSupport::kNever;
  return both;
}

}  // namespace attn
