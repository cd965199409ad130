// Codes that a cache write stores. Scales, quotients and products are float32, each step rounded,
// as every writer computes them; then one rounding to the code.
#pragma once

#include <cstdint>
#include <span>

#include "attn/dtype.h"

namespace attn::reference {

inline constexpr float kLargestE4M3 = 448.0f;

// Nearest code of x / scale; saturates below 16 bits.
std::uint64_t quantize(DType dtype, float x, float scale);

// A scale for a vector and how its codes are made from it.
struct VectorScale {
  float scale;

  // max(largest |x| / QMAX, 1e-6), QMAX = 127 (i8) or 448 (f8_e4m3fn): per token and head.
  static VectorScale of_token_head(DType dtype, std::span<const float> x);

  // Code of x * (1 / scale). i8 rounds half away from zero.
  std::uint64_t code(DType dtype, float x) const;
};

}  // namespace attn::reference
