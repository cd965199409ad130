#include "reference/second/quantised_code.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace attn::second {

static_assert(FLT_EVAL_METHOD == 0, "float32 steps must round as float32");

namespace {

Overflow overflow_of(DType type) {
  return bits(type) <= 8 ? Overflow::kSaturate : Overflow::kInfinity;
}

}  // namespace

std::uint64_t converted_code(DType to, const StoredValue& from) {
  if (to == from.type) return from.code;
  return encode(to, decode(from.type, from.code), overflow_of(to));
}

std::uint64_t divided_code(DType to, double value, float scale) {
  return encode(to, static_cast<float>(value) / scale, overflow_of(to));
}

float computed_scale(double largest, float code_max, float smallest_scale) {
  return std::max(static_cast<float>(largest) / code_max, smallest_scale);
}

std::uint64_t reciprocal_code(DType to, double value, float scale) {
  const float reciprocal = 1.0F / scale;
  const float product = static_cast<float>(value) * reciprocal;
  return encode(to, to == DType::kI8 ? std::round(product) : product, Overflow::kSaturate);
}

}  // namespace attn::second
