// The order of a paged KV cache's axes (layers L, blocks B, sides and slots N, heads H, channels C)
// that backends declare, and the order that several backends agree on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace attn {

enum class CacheLayout : std::uint8_t { kLBHNC, kLBNHC, kLHBNC, kBLHNC, kBLNHC, kBHLNC };
inline constexpr int kNumCacheLayouts = 6;

std::string_view name(CacheLayout layout);  // "LBHNC"
std::optional<CacheLayout> cache_layout_from_name(std::string_view name);

using CacheLayouts = std::vector<CacheLayout>;

// What the declarations (none = any layout) have in common, best first: the default preference
// when nobody declares, the one declaration when all are equal, else by votes. Nothing in common:
// VllmError ValueError.
CacheLayouts common_cache_layouts(std::span<const std::optional<CacheLayouts>> declared);

}  // namespace attn
