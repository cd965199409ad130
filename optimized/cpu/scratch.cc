#include "optimized/cpu/scratch.h"

#include "attn/backend.h"

namespace attn::cpu {
namespace {

// Hands out aligned pieces one behind another; without memory it only counts.
class Carver {
 public:
  explicit Carver(std::byte* memory) : memory_(memory) {}

  template <class T>
  T* take(std::int64_t count) {
    std::byte* piece = memory_ == nullptr ? nullptr : memory_ + used_;
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    used_ += (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
    return reinterpret_cast<T*>(piece);
  }

  std::size_t used() const { return used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

SoftmaxStates take_states(const ScratchSizes& sizes, Carver& carver) {
  const std::int64_t stride = padded_head_size(sizes.head_size_v);
  SoftmaxStates states;
  states.max = carver.take<float>(sizes.rows());
  states.sum = carver.take<float>(sizes.rows());
  states.acc = carver.take<float>(sizes.rows() * stride);
  states.stride = stride;
  return states;
}

Scratch carve(const ScratchSizes& sizes, Carver& carver) {
  const std::int64_t stride = padded_head_size(sizes.head_size_v);
  Scratch scratch;
  scratch.query = carver.take<float>(sizes.rows() * sizes.head_size);
  scratch.tile.keys = carver.take<float>(sizes.head_size * kTileKeys);
  scratch.tile.values = carver.take<float>(kTileKeys * stride);
  scratch.tile.rows = carver.take<float>(KvTile::kRowsAtOnce * sizes.head_size);
  scratch.tile.infinite_or_nan = 0;
  scratch.total = take_states(sizes, carver);
  scratch.part = scratch.total;
  if (sizes.has_parts) scratch.part = take_states(sizes, carver);
  scratch.tile_acc = carver.take<float>(stride);
  scratch.intervals = carver.take<KeyInterval>(sizes.tokens * sizes.intervals_per_row);
  scratch.row_keys = carver.take<RowKeys>(sizes.tokens);
  scratch.visible = carver.take<std::uint64_t>(sizes.tokens);
  return scratch;
}

}  // namespace

std::size_t scratch_bytes(const ScratchSizes& sizes) {
  Carver carver(nullptr);
  carve(sizes, carver);
  return carver.used();
}

Scratch place_scratch(const ScratchSizes& sizes, std::byte* memory) {
  Carver carver(memory);
  return carve(sizes, carver);
}

}  // namespace attn::cpu
