// Working memory of one worker, carved out of the caller's workspace.
#pragma once

#include <cstddef>
#include <cstdint>

#include "optimized/cpu/intervals.h"
#include "optimized/cpu/kv_tile.h"
#include "optimized/cpu/softmax_state.h"

namespace attn::cpu {

// The largest work item of a plan.
struct ScratchSizes {
  std::int64_t tokens = 0;
  std::int64_t heads = 0;  // query heads that share a KV head
  std::int64_t head_size = 0;
  std::int64_t head_size_v = 0;
  std::int64_t intervals_per_row = 0;
  bool has_parts = false;  // keys are answered in parts and merged

  std::int64_t rows() const { return tokens * heads; }
  bool operator==(const ScratchSizes&) const = default;
};

// A row is a (token, head) of the work item: row = token * heads + head.
struct Scratch {
  float* query;  // [rows, head_size]
  KvTile tile;
  SoftmaxStates total;
  SoftmaxStates part;      // with has_parts
  float* tile_acc;         // [padded head_size_v]
  KeyInterval* intervals;  // [tokens, intervals_per_row]
  RowKeys* row_keys;       // [tokens]
  std::uint64_t* visible;  // [tokens], bits of the current tile
};

// Bytes of one Scratch, a multiple of kWorkspaceAlignment.
std::size_t scratch_bytes(const ScratchSizes& sizes);

// A Scratch in memory of scratch_bytes(sizes), aligned to kWorkspaceAlignment. Contents undefined.
Scratch place_scratch(const ScratchSizes& sizes, std::byte* memory);

}  // namespace attn::cpu
