// A tensor somebody else owns: pointer, type, shape, byte strides. Plain data, so that a C
// interface is a cast and DLPack a copy of fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>

#include "attn/dtype.h"

namespace attn {

enum class MemorySpace : std::uint8_t { kHost, kDevice };

inline constexpr int kMaxRank = 6;

// Pointer is `const void` or `void`. A view with rank 0 is absent: no tensor of this project is a
// scalar. Strides are in bytes and may be anything that stays inside the owner's memory; a view
// does not know that memory's size, the reader that made the view does.
template <class Pointer>
struct BasicTensorView {
  Pointer* data = nullptr;
  DType dtype = DType::kF32;
  MemorySpace space = MemorySpace::kHost;
  std::int32_t rank = 0;
  std::int64_t shape[kMaxRank] = {};         // in units of dtype (view of f4: bytes)
  std::int64_t stride_bytes[kMaxRank] = {};  // may be 0 (broadcast)

  bool present() const { return rank != 0; }

  std::int64_t num_units() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }

  // Address of the unit at the given indices, one index per axis (not checked).
  template <class... Index>
  auto* at(Index... index) const {
    using Byte = std::conditional_t<std::is_const_v<Pointer>, const std::byte, std::byte>;
    std::int64_t offset = 0;
    int axis = 0;
    ((offset += static_cast<std::int64_t>(index) * stride_bytes[axis++]), ...);
    return static_cast<Byte*>(data) + offset;
  }

  operator BasicTensorView<const void>() const
    requires(!std::is_const_v<Pointer>)
  {
    BasicTensorView<const void> view;
    view.data = data;
    view.dtype = dtype;
    view.space = space;
    view.rank = rank;
    for (int i = 0; i < kMaxRank; ++i) {
      view.shape[i] = shape[i];
      view.stride_bytes[i] = stride_bytes[i];
    }
    return view;
  }
};

using TensorView = BasicTensorView<const void>;
using MutableTensorView = BasicTensorView<void>;

static_assert(std::is_trivially_copyable_v<TensorView> && std::is_standard_layout_v<TensorView>);
static_assert(sizeof(TensorView) == sizeof(MutableTensorView));

// A dense view in C order. `shape` has 1..kMaxRank axes.
TensorView contiguous(const void* data, DType dtype, std::span<const std::int64_t> shape);
MutableTensorView contiguous(void* data, DType dtype, std::span<const std::int64_t> shape);

inline TensorView contiguous(const void* data, DType dtype,
                             std::initializer_list<std::int64_t> shape) {
  return contiguous(data, dtype, std::span<const std::int64_t>(shape.begin(), shape.size()));
}
inline MutableTensorView contiguous(void* data, DType dtype,
                                    std::initializer_list<std::int64_t> shape) {
  return contiguous(data, dtype, std::span<const std::int64_t>(shape.begin(), shape.size()));
}

// The same elements with axes `a` and `b` exchanged (NHD <-> HND).
TensorView swap_axes(TensorView view, int a, int b);

// `length` units of one axis, beginning at `first`.
TensorView slice(TensorView view, int axis, std::int64_t first, std::int64_t length);

// Value of one unit, decoded exactly; the type must hold one element per unit.
template <class... Index>
double value_at(const TensorView& view, Index... index) {
  return decode(view.dtype, load_code(view.dtype, view.at(index...)));
}

// One element of an index tensor (kI32 or kI64), or of a kBool tensor as 0 / 1.
template <class... Index>
std::int64_t int_at(const TensorView& view, Index... index) {
  const std::uint64_t code = load_code(view.dtype, view.at(index...));
  if (view.dtype == DType::kI32) return static_cast<std::int32_t>(code);
  if (view.dtype == DType::kBool) return code != 0 ? 1 : 0;
  return static_cast<std::int64_t>(code);
}

// "f32[3,4,16]"
std::string to_string(const TensorView& view);

}  // namespace attn
