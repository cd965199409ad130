#include "optimized/cpu/widen.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>

#include "attn/error.h"

namespace attn::cpu {
namespace {

template <class Code>
Code code_at(const std::byte* codes, std::int64_t i) {
  Code code;
  std::memcpy(&code, codes + i * static_cast<std::int64_t>(sizeof code), sizeof code);
  return code;
}

float from_bf16(std::uint16_t code) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
}

// The fraction and exponent fields moved to float's places are a float too small by the difference
// of the biases, 2^112: one exact multiplication repairs normal and subnormal numbers alike.
float from_f16(std::uint16_t code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x8000) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(code & 0x7FFF) << 13;
  const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const std::uint32_t special = magnitude | 0x7F800000u;
  return std::bit_cast<float>(sign | ((code & 0x7C00) == 0x7C00 ? special : scaled));
}

void widen_dense(DType type, const std::byte* codes, std::int64_t n, float* values) {
  switch (type) {
    case DType::kF32:
      std::memcpy(values, codes, static_cast<std::size_t>(n) * sizeof(float));
      return;
    case DType::kBF16:
      for (std::int64_t i = 0; i < n; ++i) values[i] = from_bf16(code_at<std::uint16_t>(codes, i));
      return;
    case DType::kF16:
      for (std::int64_t i = 0; i < n; ++i) values[i] = from_f16(code_at<std::uint16_t>(codes, i));
      return;
    case DType::kI8:
      for (std::int64_t i = 0; i < n; ++i) values[i] = code_at<std::int8_t>(codes, i);
      return;
    default: {
      const float* table = code_values(type);
      for (std::int64_t i = 0; i < n; ++i) values[i] = table[std::to_integer<int>(codes[i])];
    }
  }
}

using CodeTable = std::array<float, 256>;

CodeTable make_table(DType type) {
  CodeTable table;
  for (unsigned code = 0; code < table.size(); ++code) {
    table[code] = static_cast<float>(decode(type, type == DType::kF4E2M1 ? code & 0xF : code));
  }
  return table;
}

template <DType type>
const float* table_of() {
  static const CodeTable table = make_table(type);
  return table.data();
}

}  // namespace

const float* code_values(DType type) {
  switch (type) {
    case DType::kI8:
      return table_of<DType::kI8>();
    case DType::kF8E4M3FN:
      return table_of<DType::kF8E4M3FN>();
    case DType::kF8E4M3FNUZ:
      return table_of<DType::kF8E4M3FNUZ>();
    case DType::kF8E5M2:
      return table_of<DType::kF8E5M2>();
    case DType::kF4E2M1:
      return table_of<DType::kF4E2M1>();
    default:
      throw Error("elements of type " + std::string(name(type)) + " do not widen to float32");
  }
}

void widen(DType type, const std::byte* codes, std::int64_t stride_bytes, std::int64_t n,
           float* values) {
  const std::int64_t unit = unit_bytes(type);
  if (stride_bytes == unit) return widen_dense(type, codes, n, values);
  constexpr std::int64_t kBlock = 64;
  std::byte gathered[kBlock * sizeof(double)];
  for (std::int64_t first = 0; first < n; first += kBlock) {
    const std::int64_t count = std::min(kBlock, n - first);
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(gathered + i * unit, codes + (first + i) * stride_bytes,
                  static_cast<std::size_t>(unit));
    }
    widen_dense(type, gathered, count, values + first);
  }
}

}  // namespace attn::cpu
