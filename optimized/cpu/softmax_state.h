// The running state of online softmax, row by row: maximum, sum of weights, weighted values.
#pragma once

#include <cstdint>

#include "optimized/cpu/kv_tile.h"

namespace attn::cpu {

// Weights of a tile are summed in this many lanes, lane j mod kSumLanes, then pairwise.
inline constexpr std::int64_t kSumLanes = 8;

// States of some rows. A row with max -inf has seen no key; one with max NaN will answer NaN
// whatever follows. Weights are relative to e^max. Owned by the scratch.
struct SoftmaxStates {
  float* max;  // [rows]
  float* sum;  // [rows]
  float* acc;  // [rows, stride]
  std::int64_t stride;

  float* acc_row(std::int64_t row) const { return acc + row * stride; }
};

// No row has seen a key.
void clear(const SoftmaxStates& states, std::int64_t rows);

// One online step: `keys` (not empty) are the visible keys of a tile, `scores` their scores and
// -inf elsewhere; overwritten. `tile_acc` [stride] is scratch. A row's result depends on nothing
// but its own scores and visible values.
void add_tile(const SoftmaxStates& states, std::int64_t row, std::uint64_t keys, float* scores,
              const KvTile& tile, float* tile_acc);

// total <- total joined with part, row by row; rows that saw nothing in `part` do not change.
void merge(const SoftmaxStates& total, const SoftmaxStates& part, std::int64_t rows);

}  // namespace attn::cpu
