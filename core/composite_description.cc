#include "core/composite_description.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "attn/error.h"
#include "attn/vllm_error.h"
#include "core/checks.h"
#include "core/contains.h"

namespace attn {
namespace {

using Children = std::span<const DescribedChild>;

// Does the predicate hold for every child?
template <class Predicate>
bool all(Children children, const Predicate& predicate) {
  return std::all_of(children.begin(), children.end(), predicate);
}
bool all(Children children, bool DescribedBackend::*flag) {
  return all(children, [flag](const DescribedChild& child) { return child.backend.*flag; });
}

HeadSizes common_heads(const std::vector<int>& wanted, Children children) {
  HeadSizes common;
  common.declared = wanted;
  std::vector<int> list = wanted;
  for (const DescribedChild& child : children) {
    const HeadSizes& heads = child.backend.heads;
    common.min = std::max(common.min, heads.min);
    common.max = std::min(common.max, heads.max);
    common.multiple_of =
        checks::least_common_multiple("head sizes", common.multiple_of, heads.multiple_of);
    if (list.empty()) list = heads.only;
  }
  if (list.empty()) return common;
  std::copy_if(list.begin(), list.end(), std::back_inserter(common.only), [&](int size) {
    return all(children,
               [size](const DescribedChild& child) { return child.backend.heads.allow(size); });
  });
  if (common.only.empty()) {  // nothing at all
    common.min = 1;
    common.max = 0;
  }
  return common;
}

// What the first child lists and all others list, too.
template <class T>
std::vector<T> common_entries(std::vector<T> DescribedBackend::*list, Children children) {
  std::vector<T> common;
  const std::vector<T>& first = children.front().backend.*list;
  std::copy_if(first.begin(), first.end(), std::back_inserter(common), [&](const T& entry) {
    return all(children,
               [&](const DescribedChild& child) { return contains(child.backend.*list, entry); });
  });
  return common;
}

CacheDTypeSet common_kv_dtypes(Children children) {
  CacheDTypeSet common = CacheDTypeSet::all();
  for (const DescribedChild& child : children) {
    common = common.common_with(child.backend.kv.accepted);
  }
  return common;
}

void set_layouts(DescribedBackend& composite, Children children) {
  std::vector<std::optional<CacheLayouts>> declared;
  try {
    for (const DescribedChild& child : children) {
      declared.push_back(supported_layouts(child.backend));
    }
    composite.layouts = common_cache_layouts(declared);
  } catch (const VllmError& error) {
    composite.layouts_raise = error.what();
  }
}

// Asks the children in order. A rule of child c among n is n * rule + c.
class ChildrenRules final : public CombinationRules {
 public:
  explicit ChildrenRules(Children children) {
    for (const DescribedChild& child : children) {
      children_.push_back({child.backend.name, child.backend.combination, child.sees_mm_prefix});
    }
  }

  std::uint32_t first_broken(const SelectorFacts& facts,
                             const AttentionSelectorConfig& config) const override {
    const auto count = static_cast<std::uint32_t>(children_.size());
    for (std::uint32_t index = 0; index < count; ++index) {
      const Child& child = children_[index];
      if (!child.rules) continue;
      const bool as_it_is = !config.use_mm_prefix || child.sees_mm_prefix;
      const std::uint32_t rule = as_it_is
                                     ? child.rules->first_broken(facts, config)
                                     : child.rules->first_broken(facts, seen_by(child, config));
      if (rule != 0 && child.rules->has_text(rule)) return count * rule + index;
    }
    return 0;
  }
  std::string text(std::uint32_t rule, const SelectorFacts& facts,
                   const AttentionSelectorConfig& config) const override {
    const Child& child = children_[rule % children_.size()];
    const auto own = static_cast<std::uint32_t>(rule / children_.size());
    return fmt::format("{}: {}", child.name, child.rules->text(own, facts, seen_by(child, config)));
  }

 private:
  struct Child {
    std::string name;
    std::shared_ptr<const CombinationRules> rules;
    bool sees_mm_prefix = false;
  };

  static AttentionSelectorConfig seen_by(const Child& child,
                                         const AttentionSelectorConfig& config) {
    AttentionSelectorConfig seen = config;
    seen.use_mm_prefix = config.use_mm_prefix && child.sees_mm_prefix;
    return seen;
  }

  std::vector<Child> children_;
};

}  // namespace

DescribedBackend describe_composite(const CompositeOptions& options,
                                    const std::optional<DeviceCapability>& capability,
                                    Children children) {
  if (std::any_of(children.begin(), children.end(),
                  [](const DescribedChild& child) { return child.backend.update_in_forward; })) {
    throw VllmError("ValueError", "Composite backends require separate KV cache updates");
  }
  std::vector<KernelBlocks> blocks;
  for (const DescribedChild& child : children) blocks.push_back(child.backend.blocks);

  DescribedBackend composite;
  composite.name = options.backend_name;
  composite.heads = common_heads(options.head_sizes, children);
  composite.declared_dtypes = composite.dtypes;
  composite.dtypes = common_entries(&DescribedBackend::dtypes, children);
  composite.kv.accepted = common_kv_dtypes(children);
  composite.blocks.sizes = composite_block_sizes(blocks, options.kernel_block_sizes);
  composite.blocks.empty_refuses = true;
  const bool on_its_device =
      !options.device_major || (capability && capability->major == *options.device_major);
  composite.capability = on_its_device && all(children, &DescribedBackend::capability);
  composite.mm_prefix = all(children, [](const DescribedChild& child) {
    return !child.sees_mm_prefix || child.backend.mm_prefix;
  });
  composite.sliding_window = all(children, &DescribedBackend::sliding_window);
  composite.rswa = all(children, &DescribedBackend::rswa);
  composite.query_lens_mismatch = false;
  set_layouts(composite, children);
  composite.combination = std::make_shared<ChildrenRules>(children);
  composite.update_in_forward = false;
  composite.graph = GraphSupport::kNever;
  if (options.connector_and_types_of_children) {
    composite.kv_connector = all(children, &DescribedBackend::kv_connector);
    composite.attn_types = common_entries(&DescribedBackend::attn_types, children);
  }
  return composite;
}

BlockSizes composite_block_sizes(std::span<const KernelBlocks> children,
                                 std::span<const int> wanted) {
  BlockSizes sizes;
  if (wanted.empty()) {
    sizes = children.front().sizes;
    for (const KernelBlocks& child : children.subspan(1)) {
      sizes = intersect_block_sizes(sizes, child.sizes);
    }
    return sizes;
  }
  for (const int size : wanted) {
    const bool fits = std::all_of(children.begin(), children.end(),
                                  [size](const KernelBlocks& c) { return c.support(size); });
    if (fits) sizes.push_back({size, false});
  }
  return sizes;
}

}  // namespace attn
