#include "optimized/cpu/widen.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "attn/error.h"

namespace attn::cpu {
namespace {

// Every code of a type of at most 16 bits, each followed by a gap byte.
void expect_exact(DType type) {
  const std::int64_t unit = unit_bytes(type);
  const std::int64_t count = std::int64_t{1} << bits(type);
  for (const std::int64_t stride : {unit, unit + 1}) {
    std::vector<std::byte> codes(static_cast<std::size_t>(count * stride));
    for (std::int64_t code = 0; code < count; ++code) {
      store_code(type, static_cast<std::uint64_t>(code), codes.data() + code * stride);
    }
    std::vector<float> values(static_cast<std::size_t>(count));
    widen(type, codes.data(), stride, count, values.data());
    for (std::int64_t code = 0; code < count; ++code) {
      const double expected = decode(type, static_cast<std::uint64_t>(code));
      const double got = values[static_cast<std::size_t>(code)];
      ASSERT_TRUE(std::isnan(expected) ? std::isnan(got) : expected == got)
          << name(type) << " code " << code << ": expected " << expected << ", got " << got;
      ASSERT_EQ(std::signbit(expected), std::signbit(got)) << name(type) << " code " << code;
    }
  }
}

TEST(CpuWiden, GivesTheValueOfEveryCode) {
  for (const DType type : {DType::kF16, DType::kBF16, DType::kI8, DType::kF8E4M3FN,
                           DType::kF8E4M3FNUZ, DType::kF8E5M2}) {
    expect_exact(type);
  }
}

TEST(CpuWiden, KeepsFloatsAtAnyAlignmentAndStride) {
  const float values[] = {1.5f, -0.0f, 1e-45f, INFINITY};
  std::vector<std::byte> memory(1 + 4 * 6);
  for (int i = 0; i < 4; ++i) std::memcpy(memory.data() + 1 + 6 * i, &values[i], sizeof(float));
  float got[4];
  widen(DType::kF32, memory.data() + 1, 6, 4, got);
  EXPECT_EQ(0, std::memcmp(got, values, sizeof values));
}

TEST(CpuWiden, RejectsTypesWiderThanFloat) {
  const std::byte codes[16] = {};
  float value[2];
  EXPECT_THROW(widen(DType::kF64, codes, 8, 2, value), Error);
  EXPECT_THROW(widen(DType::kF64, codes, 1, 2, value), Error);
}

}  // namespace
}  // namespace attn::cpu
