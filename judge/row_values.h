// A stretch of the last axis of a tensor as doubles.
#pragma once

#include <cstdint>

#include "attn/view.h"

namespace attn::judge {

// Decodes `count` elements of `type`, `stride_bytes` apart from `from` on. One element per unit.
void read_values(const std::byte* from, DType type, std::int64_t stride_bytes, std::int64_t count,
                 double* values);

// A NaN without its sign, which says nothing and is printed where there is one.
double without_nan_sign(double value);

// Elements [first, first + count) of view[index..., :].
template <class... Index>
void read_row(const TensorView& view, std::int64_t first, std::int64_t count, double* values,
              Index... index) {
  const std::int64_t stride = view.stride_bytes[view.rank - 1];
  read_values(view.at(index...) + first * stride, view.dtype, stride, count, values);
}

}  // namespace attn::judge
