// Tensors without their strides.
#pragma once

#include "attn/host_tensor.h"
#include "attn/view.h"

namespace attn::golden {

// The units of `from`, in C order. Throws Error, naming `what`, for a view that has no such copy:
// too many axes, a negative or unaddressable size, no memory, memory of a device.
HostTensor dense_copy(const std::string& what, const TensorView& from);

// Axis `axis` of a view that may have any rank; 0 where there is none.
std::int64_t axis_or_zero(const TensorView& view, int axis);

// Two views that agree in all axes but the last, behind one another: [..., a] and [..., b] make
// [..., a + b]. Throws Error as dense_copy(), and for views that do not agree.
HostTensor dense_rows(const std::string& what, const TensorView& first, const TensorView& second);

}  // namespace attn::golden
