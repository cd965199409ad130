#include "attn/cache_layouts.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>

#include "attn/vllm_error.h"
#include "core/contains.h"

namespace attn {
namespace {

// Letters of the logical cache in the order of its axes, and of each layout.
constexpr std::string_view kAxes = "LBHNC";
constexpr std::array<std::string_view, kNumCacheLayouts> kLayoutNames = {"LBHNC", "LBNHC", "LHBNC",
                                                                         "BLHNC", "BLNHC", "BHLNC"};

CacheLayouts default_preference() {
  using enum CacheLayout;
  return {kLBNHC, kLBHNC, kBLNHC, kBLHNC, kBHLNC, kLHBNC};
}

CacheLayouts by_votes(const std::vector<CacheLayouts>& declared) {
  CacheLayouts common;
  std::array<int, kNumCacheLayouts> votes{};
  for (int index = 0; index < kNumCacheLayouts; ++index) {
    const auto layout = static_cast<CacheLayout>(index);
    const bool everywhere =
        std::all_of(declared.begin(), declared.end(),
                    [layout](const CacheLayouts& layouts) { return contains(layouts, layout); });
    if (everywhere) common.push_back(layout);
  }
  for (const CacheLayouts& layouts : declared) {
    if (!layouts.empty()) ++votes[static_cast<std::size_t>(layouts.front())];
  }
  std::stable_sort(common.begin(), common.end(), [&](CacheLayout a, CacheLayout b) {
    return votes[static_cast<std::size_t>(a)] > votes[static_cast<std::size_t>(b)];
  });
  return common;
}

}  // namespace

std::string_view name(CacheLayout layout) { return kLayoutNames[static_cast<std::size_t>(layout)]; }

std::optional<CacheLayout> cache_layout_from_name(std::string_view name) {
  const auto found = std::find(kLayoutNames.begin(), kLayoutNames.end(), name);
  if (found == kLayoutNames.end()) return std::nullopt;
  return static_cast<CacheLayout>(found - kLayoutNames.begin());
}

std::array<int, 5> stride_order(CacheLayout layout) {
  std::array<int, 5> order{};
  std::transform(name(layout).begin(), name(layout).end(), order.begin(),
                 [](char axis) { return static_cast<int>(kAxes.find(axis)); });
  return order;
}

std::array<int, 4> layer_view_order(CacheLayout layout) {
  std::array<int, 4> order{};
  auto next = order.begin();
  for (const int axis : stride_order(layout)) {
    if (axis != 0) *next++ = axis - 1;
  }
  return order;
}

bool is_layer_compact(CacheLayout layout) { return name(layout).starts_with("L"); }
bool is_block_compact(CacheLayout layout) {
  return name(layout).starts_with("LB") || name(layout).starts_with("BL");
}
bool is_block_contiguous(CacheLayout layout) { return name(layout).ends_with("HNC"); }
bool is_block_outermost(CacheLayout layout) { return name(layout).starts_with("B"); }

std::string to_string(const CacheLayouts& layouts) {
  std::string names;
  for (const CacheLayout layout : layouts) {
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", name(layout));
  }
  return fmt::format("[{}]", names);
}

std::string to_string(std::span<const CacheLayouts> supported) {
  std::string lists;
  for (const CacheLayouts& layouts : supported) {
    lists += fmt::format("{}{}", lists.empty() ? "" : ", ", to_string(layouts));
  }
  return fmt::format("[{}]", lists);
}

CacheLayouts common_cache_layouts(std::span<const std::optional<CacheLayouts>> declared) {
  std::vector<CacheLayouts> given;
  for (const std::optional<CacheLayouts>& layouts : declared) {
    if (layouts) given.push_back(*layouts);
  }
  if (given.empty()) return default_preference();
  const bool all_equal = std::all_of(given.begin(), given.end(), [&](const CacheLayouts& layouts) {
    return layouts == given.front();
  });
  CacheLayouts common = all_equal ? given.front() : by_votes(given);
  if (common.empty()) {
    throw VllmError("ValueError",
                    fmt::format("No KV cache layout satisfies every supported set: {}.",
                                to_string(std::span<const CacheLayouts>(given))));
  }
  return common;
}

}  // namespace attn
