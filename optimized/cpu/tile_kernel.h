// The two loops that take the time. Everything a faster instruction set would replace is here.
#pragma once

#include <cstdint>

namespace attn::cpu {

inline constexpr std::int64_t kTileKeys = 64;     // keys of a tile, a bit each in a std::uint64_t
inline constexpr std::int64_t kKernelLanes = 32;  // independent sums the inner loops keep
inline constexpr std::int64_t kDotBlock = 64;     // products a dot sums before it adds the sum up

// dots[j] = sum over d of query[d] * keys[d, j], j < kTileKeys; keys is [head_size, kTileKeys]. In
// blocks of kDotBlock, each a chain in the order of d.
void dot_tile(const float* query, std::int64_t head_size, const float* keys, float* dots);

// sum[d] = sum over the bits j of `keys` of weights[j] * values[j, d], d < stride, a chain in the
// order of j; values is [kTileKeys, stride], stride a multiple of kKernelLanes. Rows without a bit
// are not read.
void weigh_values(const float* weights, std::uint64_t keys, const float* values,
                  std::int64_t stride, float* sum);

}  // namespace attn::cpu
