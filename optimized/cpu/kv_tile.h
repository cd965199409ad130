// A tile of keys and values in the form the kernels read.
#pragma once

#include <cstdint>

#include "optimized/cpu/row_reader.h"
#include "optimized/cpu/tile_kernel.h"

namespace attn::cpu {

// Floats of a value row in a tile: head_size_v rounded up to whole kernel steps, the rest 0.
inline std::int64_t padded_head_size(std::int64_t head_size_v) {
  return (head_size_v + kKernelLanes - 1) / kKernelLanes * kKernelLanes;
}

// Keys [first, first + kTileKeys) of one request and KV head, first a multiple of kTileKeys. Only
// the loaded keys are defined. Owned by the scratch.
struct KvTile {
  float* keys;                    // [head_size, kTileKeys]
  float* values;                  // [kTileKeys, padded_head_size(head_size_v)]
  float* rows;                    // [kRowsAtOnce, head_size], for the transposition
  std::uint64_t infinite_or_nan;  // bit j: some element of value row j is
  static constexpr std::int64_t kRowsAtOnce = 8;
};

// Reads the keys of `wanted` (bit j: key first + j) and nothing else.
void load_tile(const RowReader& keys, const RowReader& values, std::int64_t first,
               std::uint64_t wanted, KvTile& tile);

}  // namespace attn::cpu
