#include "attn/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "attn/error.h"

namespace attn {
namespace {

template <class Pointer>
BasicTensorView<Pointer> contiguous_view(Pointer* data, DType dtype,
                                         std::span<const std::int64_t> shape) {
  if (shape.empty() || shape.size() > kMaxRank) {
    throw Error(fmt::format("a tensor has 1 to {} axes, not {}", kMaxRank, shape.size()));
  }
  BasicTensorView<Pointer> view;
  view.data = data;
  view.dtype = dtype;
  view.rank = static_cast<std::int32_t>(shape.size());
  std::int64_t stride = unit_bytes(dtype);
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    view.shape[axis] = shape[static_cast<std::size_t>(axis)];
    view.stride_bytes[axis] = stride;
    stride *= view.shape[axis];
  }
  return view;
}

void require_axis(const TensorView& view, int axis) {
  if (axis < 0 || axis >= view.rank) {
    throw Error(fmt::format("axis {} of {}", axis, to_string(view)));
  }
}

}  // namespace

TensorView contiguous(const void* data, DType dtype, std::span<const std::int64_t> shape) {
  return contiguous_view(data, dtype, shape);
}

MutableTensorView contiguous(void* data, DType dtype, std::span<const std::int64_t> shape) {
  return contiguous_view(data, dtype, shape);
}

TensorView swap_axes(TensorView view, int a, int b) {
  require_axis(view, a);
  require_axis(view, b);
  std::swap(view.shape[a], view.shape[b]);
  std::swap(view.stride_bytes[a], view.stride_bytes[b]);
  return view;
}

TensorView slice(TensorView view, int axis, std::int64_t first, std::int64_t length) {
  require_axis(view, axis);
  if (first < 0 || length < 0 || first > view.shape[axis] - length) {
    throw Error(fmt::format("slice of {} from {} on, of axis {} of {}", length, first, axis,
                            to_string(view)));
  }
  // A view of nothing may have no memory, and nothing is added to no address.
  if (view.data != nullptr) {
    view.data = static_cast<const std::byte*>(view.data) + first * view.stride_bytes[axis];
  }
  view.shape[axis] = length;
  return view;
}

std::string to_string(const TensorView& view) {
  if (!view.present()) return "absent";
  return fmt::format("{}[{}]", name(view.dtype),
                     fmt::join(view.shape, view.shape + view.rank, ","));
}

}  // namespace attn
