#include "reference/block_quantize.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "attn/dtype.h"
#include "attn/error.h"
#include "reference/quantize.h"

namespace attn::reference {
namespace {

constexpr float kLargestE2M1 = 6.0f;
constexpr std::uint8_t kNaNScale = 0x7F;

}  // namespace

Nvfp4Block quantize_nvfp4(std::span<const float, 16> x, float inverse_global) {
  if (!(inverse_global > 0.0f) || std::isinf(inverse_global)) {
    throw Error(fmt::format("inverse_global is {}, must be positive and finite", inverse_global));
  }
  Nvfp4Block block;
  float largest = 0.0f;
  for (const float value : x) {
    if (std::isnan(value)) {
      block.scale = kNaNScale;
      return block;
    }
    largest = std::max(largest, std::fabs(value));
  }
  const float wanted = inverse_global * largest / kLargestE2M1;
  block.scale = static_cast<std::uint8_t>(encode(DType::kF8E4M3FN, wanted, Overflow::kSaturate));
  if (block.scale == 0) return block;
  const auto scale = static_cast<float>(decode(DType::kF8E4M3FN, block.scale));
  for (std::size_t i = 0; i < x.size(); ++i) {
    block.codes[i] =
        static_cast<std::uint8_t>(quantize(DType::kF4E2M1, x[i] * inverse_global, scale));
  }
  return block;
}

Fp8Group quantize_fp8_group(std::span<const float> x) {
  float largest = 0.0f;
  for (const float value : x) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  }
  Fp8Group group;
  group.scale = std::max(largest / kLargestE4M3, 0x1p-126f);
  for (const float value : x) {
    group.codes.push_back(
        static_cast<std::uint8_t>(quantize(DType::kF8E4M3FN, value, group.scale)));
  }
  return group;
}

}  // namespace attn::reference
