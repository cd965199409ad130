// The model's rounder against the one conversion of the project, and against the definition.
#include "property_tests/number_rounder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "attn/dtype.h"
#include "attn/random.h"
#include "core/special_values.h"

namespace attn::property_tests {
namespace {

constexpr DType kStoredTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3FN,
                                  DType::kF8E5M2};

Overflow overflow_of(DType type) {
  return type == DType::kF8E4M3FN ? Overflow::kSaturate : Overflow::kInfinity;
}

// Doubles of every exponent around what `type` holds, and numbers around its midpoints.
std::vector<double> numbers_for(DType type) {
  std::vector<double> numbers = {0.0, -0.0, kInf, -kInf, 0x1p-1074, -0x1p-1074, 0x1p1000};
  const NumberFormat format = *format_of(type);
  const int lowest = std::ilogb(half_quantum(format)) - 3;
  const int highest = std::ilogb(largest_finite(format)) + 3;
  const int bits = -std::ilogb(unit_roundoff(format));  // of the significand with the hidden one
  for (int i = 0; i < 200'000; ++i) {
    const Words w = random_words(17, static_cast<std::uint64_t>(i), RandomTensor::kKey, 0);
    const int exponent =
        lowest + static_cast<int>(w[0] % static_cast<std::uint32_t>(highest - lowest + 1));
    double x = 1.0 + static_cast<double>(w[1]) * 0x1p-32 + static_cast<double>(w[2]) * 0x1p-64;
    if ((w[3] & 6) != 0) {  // at a midpoint, or next to one
      const double places = std::ldexp(1.0, bits);
      x = std::floor(x * places) / places;
      if ((w[3] & 6) == 2) x = std::nextafter(x, 2.0);
      if ((w[3] & 6) == 4) x = std::nextafter(x, 1.0);
    }
    numbers.push_back(std::ldexp((w[3] & 1) != 0 ? -x : x, exponent));
  }
  return numbers;
}

// The same number, zeros with the same sign.
void expect_same(double rounded, double expected, DType type, double x) {
  ASSERT_TRUE(rounded == expected && std::signbit(rounded) == std::signbit(expected))
      << name(type) << " of " << std::hexfloat << x << ": " << rounded << " is not " << expected;
}

TEST(NumberRounder, AgreesWithTheConversionOfStoredTypes) {
  for (const DType type : kStoredTypes) {
    const NumberRounder rounder(Rounding{*format_of(type)});
    for (const double x : numbers_for(type)) {
      expect_same(rounder(x), decode(type, encode(type, x, overflow_of(type))), type, x);
    }
    EXPECT_TRUE(std::isnan(rounder(kNaN)));
  }
}

TEST(NumberRounder, KeepsEveryCode) {
  for (const DType type : {DType::kF16, DType::kBF16, DType::kF8E4M3FN, DType::kF8E5M2}) {
    const NumberRounder rounder(Rounding{*format_of(type)});
    for (std::uint64_t code = 0; code < std::uint64_t{1} << bits(type); ++code) {
      const double x = decode(type, code);
      if (!std::isnan(x)) expect_same(rounder(x), x, type, x);
    }
  }
}

// The code below, or at, a positive number: codes of positive numbers rise with them.
double truncated(DType type, double x) {
  const double size = std::fabs(x);
  std::uint64_t code = encode(type, size, Overflow::kSaturate);
  if (decode(type, code) > size) --code;
  return std::copysign(decode(type, code), x);
}

TEST(NumberRounder, TruncatesToTheNumberBelow) {
  for (const DType type : kStoredTypes) {
    const NumberRounder rounder(Rounding{*format_of(type), RoundingMode::kTruncate});
    for (const double x : numbers_for(type)) {
      if (!std::isinf(x)) expect_same(rounder(x), truncated(type, x), type, x);
    }
  }
}

TEST(NumberRounder, FlushesSubnormalResults) {
  for (const DType type : kStoredTypes) {
    const NumberFormat format = *format_of(type);
    const NumberRounder rounder(Rounding{format, RoundingMode::kNearest, 1.0, true});
    for (const double x : numbers_for(type)) {
      double expected = decode(type, encode(type, x, overflow_of(type)));
      if (std::fabs(expected) < smallest_normal(format)) expected = std::copysign(0.0, x);
      expect_same(rounder(x), expected, type, x);
    }
  }
}

TEST(NumberRounder, ScalesBeforeAndAfter) {
  const NumberRounder rounder(Rounding{NumberFormat::kF8E4M3FN, RoundingMode::kNearest, 256.0});
  EXPECT_EQ(rounder(1.0), 1.0);
  EXPECT_EQ(rounder(0x1p-17), 0x1p-17);  // the smallest subnormal of 2^-9, divided by 2^8
  EXPECT_EQ(rounder(0x1p-19), 0.0);
  EXPECT_EQ(rounder(2.0), 448.0 / 256.0);
}

// tf32 is no stored type: 11 significant bits in the exponents of f32.
TEST(NumberRounder, RoundsToTf32ByItsDefinition) {
  const NumberRounder nearest(Rounding{NumberFormat::kTF32});
  const NumberRounder truncate(Rounding{NumberFormat::kTF32, RoundingMode::kTruncate});
  for (const double x : numbers_for(DType::kF32)) {
    if (std::fabs(x) > 0x1p127) continue;
    const int exponent = x == 0.0 ? -126 : std::max(std::ilogb(x), -126);
    const double place = std::ldexp(1.0, exponent - 10);
    expect_same(nearest(x), std::copysign(std::nearbyint(x / place) * place, x), DType::kF32, x);
    expect_same(truncate(x), std::copysign(std::trunc(x / place) * place, x), DType::kF32, x);
  }
  EXPECT_EQ(nearest(0x1.ffffp+127), kInf);
}

TEST(NumberRounder, OfF64OnlyFlushes) {
  const NumberRounder plain(Rounding{NumberFormat::kF64});
  const NumberRounder flush(Rounding{NumberFormat::kF64, RoundingMode::kNearest, 1.0, true});
  for (const double x : {0.1, -0x1p-1060, 0x1p1023, 0x1p-1022}) EXPECT_EQ(plain(x), x);
  EXPECT_EQ(flush(-0x1p-1060), 0.0);
  EXPECT_EQ(flush(0x1p-1022), 0x1p-1022);
  EXPECT_EQ(flush(0.1), 0.1);
}

TEST(NumberRounder, BetweenNeverLeavesTheInterval) {
  const NumberRounder rounder(Rounding{NumberFormat::kF32});
  for (int i = 0; i < 100'000; ++i) {
    const Words w = random_words(3, static_cast<std::uint64_t>(i), RandomTensor::kValue, 0);
    const double exact = 0.1 + static_cast<double>(w[0]) * 0x1p-30;
    const double target = exact * (1.0 + (static_cast<double>(w[1]) * 0x1p-31 - 1.0) * 0x1p-21);
    const double y = rounder.between(target, exact);
    ASSERT_GE(y, std::min(target, exact));
    ASSERT_LE(y, std::max(target, exact));
    ASSERT_LE(std::fabs(y - target), 0x1p-23 * target);
  }
}

// A sum rounded to odd and then to float is std::fma's, also where two roundings to nearest are
// not.
TEST(SumToOdd, MakesTheFusedProductOfFloats) {
  int differs = 0;
  for (int i = 0; i < 300'000; ++i) {
    const Words w = random_words(5, static_cast<std::uint64_t>(i), RandomTensor::kQuery, 0);
    const auto a = static_cast<float>(static_cast<double>(w[0] | 1) * 0x1p-32);
    const auto b = static_cast<float>(static_cast<double>(w[1]) * 0x1p-32);
    // Products far below the last place of c, next to its midpoints.
    const float c = std::ldexp(static_cast<float>(w[2] % 4096 + 1), static_cast<int>(w[3] % 50));
    const double half = std::ldexp(1.0, std::ilogb(c) - 24);
    const float tiny = std::ldexp(1.0F, std::ilogb(c) - 60);
    const double product = static_cast<double>(a) * b;
    ASSERT_EQ(static_cast<float>(sum_to_odd(c, product)), std::fma(a, b, c));
    ASSERT_EQ(static_cast<float>(sum_to_odd(-c, product)), std::fma(a, b, -c));
    const double edge = static_cast<double>(c) + half;  // a midpoint
    const auto once = static_cast<float>(static_cast<long double>(edge) + tiny);
    ASSERT_EQ(static_cast<float>(sum_to_odd(edge, tiny)), once);
    if (static_cast<float>(edge + tiny) != once) ++differs;
  }
  EXPECT_GT(differs, 0);
}

}  // namespace
}  // namespace attn::property_tests
