#include "property_tests/memory_form.h"

#include <utility>

#include "core/special_values.h"

namespace attn::property_tests {

std::uint64_t fill_code(Fill fill, DType dtype) {
  if (fill == Fill::kZero) return 0;
  if (dtype == DType::kBool) return 1;
  if (dtype == DType::kF4E2M1) return 0x77;  // the largest, twice
  if (dtype == DType::kI8) return fill == Fill::kMinusInfinity ? 0x80 : 0x7F;
  if (fill == Fill::kNaN) return encode(dtype, kNaN, Overflow::kInfinity);
  if (fill == Fill::kLargest) return encode(dtype, kInf, Overflow::kSaturate);
  return encode(dtype, fill == Fill::kPlusInfinity ? kInf : -kInf, Overflow::kInfinity);
}

HostTensor filled(DType dtype, std::vector<std::int64_t> shape, Fill fill) {
  HostTensor tensor(dtype, std::move(shape));
  tensor.fill(fill_code(fill, dtype));
  return tensor;
}

}  // namespace attn::property_tests
