// From a value to the code that a cache stores. Scales, quotients and products are float32, each
// step rounded.
#pragma once

#include <cstdint>

#include "attn/dtype.h"

namespace attn::second {

// A stored unit: its type and code.
struct StoredValue {
  DType type;
  std::uint64_t code;
};

// The same bits where the types are equal, else the nearest code.
std::uint64_t converted_code(DType to, const StoredValue& from);

// The nearest code of value / scale; types of 8 bits saturate.
std::uint64_t divided_code(DType to, double value, float scale);

// Scale of a group with the largest magnitude `largest`, when codes reach `code_max`.
float computed_scale(double largest, float code_max, float smallest_scale);

// The nearest code of value * (1 / scale); integers round half away from zero.
std::uint64_t reciprocal_code(DType to, double value, float scale);

}  // namespace attn::second
