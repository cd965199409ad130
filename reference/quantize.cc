#include "reference/quantize.h"

#include <algorithm>
#include <cmath>

namespace attn::reference {
namespace {

constexpr float kSmallestScale = 1e-6f;
constexpr float kLargestI8 = 127.0f;

}  // namespace

std::uint64_t quantize(DType dtype, float x, float scale) {
  return encode(dtype, x / scale, bits(dtype) < 16 ? Overflow::kSaturate : Overflow::kInfinity);
}

VectorScale VectorScale::of_token_head(DType dtype, std::span<const float> x) {
  float largest = 0.0f;
  for (const float value : x) largest = std::max(largest, std::fabs(value));
  const float top = dtype == DType::kI8 ? kLargestI8 : kLargestE4M3;
  return {std::max(largest / top, kSmallestScale)};
}

std::uint64_t VectorScale::code(DType dtype, float x) const {
  const float inverse = 1.0f / scale;
  const float product = x * inverse;
  // round() is half away from zero; what follows it in encode() is exact.
  return encode(dtype, dtype == DType::kI8 ? std::round(product) : product, Overflow::kSaturate);
}

}  // namespace attn::reference
