#include "golden/dense_copy.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "attn/error.h"

namespace attn::golden {
namespace {

// Bytes of a dense copy.
std::int64_t expect_copyable(const std::string& what, const TensorView& view) {
  if (view.rank < 1 || view.rank > kMaxRank) {
    throw Error(fmt::format("{} has {} axes, expected 1 to {}", what, view.rank, kMaxRank));
  }
  std::int64_t bytes = unit_bytes(view.dtype);
  bool empty = false;
  for (int axis = 0; axis < view.rank; ++axis) {
    const std::int64_t size = view.shape[axis];
    empty = empty || size == 0;
    if (size < 0 || (size != 0 && __builtin_mul_overflow(bytes, size, &bytes))) {
      throw Error(fmt::format("{} is {}, not a tensor", what, to_string(view)));
    }
  }
  if (view.space != MemorySpace::kHost) throw Error(fmt::format("{} lies on a device", what));
  if (!empty && view.data == nullptr) throw Error(fmt::format("{} has no memory", what));
  return empty ? 0 : bytes;
}

// Copies the units below `axis` of two views of one shape.
void copy_axis(const TensorView& from, const std::byte* source, const MutableTensorView& to,
               std::byte* target, int axis) {
  const std::int64_t unit = unit_bytes(from.dtype);
  const std::int64_t size = from.shape[axis];
  if (axis + 1 == from.rank && from.stride_bytes[axis] == unit && to.stride_bytes[axis] == unit) {
    std::memcpy(target, source, static_cast<std::size_t>(size * unit));
    return;
  }
  for (std::int64_t i = 0; i < size; ++i) {
    const std::byte* next_source = source + i * from.stride_bytes[axis];
    std::byte* next_target = target + i * to.stride_bytes[axis];
    if (axis + 1 == from.rank) {
      std::memcpy(next_target, next_source, static_cast<std::size_t>(unit));
    } else {
      copy_axis(from, next_source, to, next_target, axis + 1);
    }
  }
}

void copy_view(const TensorView& from, const MutableTensorView& to) {
  if (from.num_units() == 0) return;
  copy_axis(from, static_cast<const std::byte*>(from.data), to, static_cast<std::byte*>(to.data),
            0);
}

}  // namespace

HostTensor dense_copy(const std::string& what, const TensorView& from) {
  expect_copyable(what, from);
  HostTensor copy(from.dtype, {from.shape, from.shape + from.rank});
  copy_view(from, copy.view());
  return copy;
}

std::int64_t axis_or_zero(const TensorView& view, int axis) {
  return axis >= 0 && axis < std::min<int>(view.rank, kMaxRank) ? view.shape[axis] : 0;
}

HostTensor dense_rows(const std::string& what, const TensorView& first, const TensorView& second) {
  expect_copyable(what, first);
  expect_copyable(what, second);
  const int last = first.rank - 1;
  if (first.dtype != second.dtype || first.rank != second.rank ||
      !std::equal(first.shape, first.shape + last, second.shape)) {
    throw Error(fmt::format("{} cannot hold {} and {} in one row", what, to_string(first),
                            to_string(second)));
  }
  std::vector<std::int64_t> shape(first.shape, first.shape + first.rank);
  shape.back() += second.shape[last];
  HostTensor both(first.dtype, shape);
  MutableTensorView part = both.view();
  part.shape[last] = first.shape[last];
  copy_view(first, part);
  part.shape[last] = second.shape[last];
  if (part.num_units() != 0) {
    part.data = static_cast<std::byte*>(part.data) + first.shape[last] * unit_bytes(first.dtype);
    copy_view(second, part);
  }
  return both;
}

}  // namespace attn::golden
