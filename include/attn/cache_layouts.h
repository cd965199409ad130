// The order of a paged KV cache's axes (layers L, blocks B, sides and slots N, heads H, channels C)
// that backends declare, and the order that several backends agree on.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

enum class CacheLayout : std::uint8_t { kLBHNC, kLBNHC, kLHBNC, kBLHNC, kBLNHC, kBHLNC };
inline constexpr int kNumCacheLayouts = 6;

std::string_view name(CacheLayout layout);  // "LBHNC"
std::optional<CacheLayout> cache_layout_from_name(std::string_view name);

// Axes of the logical cache [L, B, H, N, C], outermost first.
std::array<int, 5> stride_order(CacheLayout layout);
// The same of one layer's cache, [B, H, N, C].
std::array<int, 4> layer_view_order(CacheLayout layout);
bool is_layer_compact(CacheLayout layout);     // L is outermost
bool is_block_compact(CacheLayout layout);     // L and B are the outer two
bool is_block_contiguous(CacheLayout layout);  // H, N, C are the inner three, in this order
bool is_block_outermost(CacheLayout layout);   // B is outermost

using CacheLayouts = std::vector<CacheLayout>;

std::string to_string(const CacheLayouts& layouts);              // "['LBHNC', 'BLNHC']"
std::string to_string(std::span<const CacheLayouts> supported);  // "[['LBHNC'], ['BLNHC']]"

// What the declarations (none = any layout) have in common, best first: the default preference
// when nobody declares, the one declaration when all are equal, else by votes. Nothing in common:
// VllmError ValueError.
CacheLayouts common_cache_layouts(std::span<const std::optional<CacheLayouts>> declared);

}  // namespace attn
