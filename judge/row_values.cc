#include "judge/row_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace attn::judge {
namespace {

double of_f32(std::uint32_t code) { return static_cast<double>(std::bit_cast<float>(code)); }

double of_bf16(std::uint16_t code) { return of_f32(static_cast<std::uint32_t>(code) << 16); }

// Exponent and fraction moved to where float32 has them, and the bias made up for by a product,
// which also normalises subnormals; infinities and NaN take float32's largest exponent.
double of_f16(std::uint16_t code) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(code & 0x7FFF) << 13;
  const bool special = (code & 0x7C00) == 0x7C00;
  const double size = of_f32(magnitude | (special ? 0x7F800000u : 0u)) * 0x1p112;
  return (code & 0x8000) != 0 ? -size : size;
}

// Eight at a time: compilers vectorise loops of known length.
template <class Code, class Widen>
void widen(const std::byte* from, std::int64_t count, double* values, Widen value_of) {
  constexpr std::int64_t kLanes = 8;
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Code codes[kLanes];
    std::memcpy(codes, from + i * static_cast<std::int64_t>(sizeof(Code)), sizeof(codes));
    for (std::int64_t lane = 0; lane < kLanes; ++lane) values[i + lane] = value_of(codes[lane]);
  }
  for (; i < count; ++i) {
    Code code;
    std::memcpy(&code, from + i * static_cast<std::int64_t>(sizeof(Code)), sizeof(code));
    values[i] = value_of(code);
  }
}

}  // namespace

void read_values(const std::byte* from, DType type, std::int64_t stride_bytes, std::int64_t count,
                 double* values) {
  if (stride_bytes == unit_bytes(type)) {
    if (type == DType::kF32) return widen<std::uint32_t>(from, count, values, of_f32);
    if (type == DType::kBF16) return widen<std::uint16_t>(from, count, values, of_bf16);
    if (type == DType::kF16) return widen<std::uint16_t>(from, count, values, of_f16);
    if (type == DType::kF64) {
      std::memcpy(values, from, static_cast<std::size_t>(count) * sizeof(double));
      return;
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] = decode(type, load_code(type, from + i * stride_bytes));
  }
}

double without_nan_sign(double value) { return std::isnan(value) ? std::fabs(value) : value; }

}  // namespace attn::judge
