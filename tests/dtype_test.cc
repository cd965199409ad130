#include "attn/dtype.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "attn/error.h"
#include "core/special_values.h"

namespace attn {
namespace {

constexpr Overflow kBothOverflows[] = {Overflow::kInfinity, Overflow::kSaturate};

// A small floating format as its specification states it: IEEE 754 for f16, its truncation for
// bf16, OCP OFP8 and MX for the 8- and 4-bit types, e4m3fnuz as LLVM describes it.
struct Format {
  DType type;
  int exponent_bits, fraction_bits, bias;
  bool ieee_specials;      // exponent all ones: infinity, or NaN with a fraction
  std::uint64_t nan;       // quiet code without sign; 0 = the format has no NaN
  double largest;          // finite
  double first_too_large;  // smallest double that rounds beyond `largest`

  int bits() const { return 1 + exponent_bits + fraction_bits; }
  std::uint64_t num_codes() const { return std::uint64_t{1} << bits(); }
  std::uint64_t sign() const { return num_codes() / 2; }
  bool has_minus_zero() const { return type != DType::kF8E4M3FNUZ; }
};

// The last column: half a step above the largest. Where the largest code is odd that tie is even
// and goes up.
const Format kFormats[] = {
    {DType::kF16, 5, 10, 15, true, 0x7E00, 65504.0, 65520.0},
    {DType::kBF16, 8, 7, 127, true, 0x7FC0, 0x1.FEp127, 0x1.FFp127},
    {DType::kF8E4M3FN, 4, 3, 7, false, 0x7F, 448.0, 0x1.D000000000001p8},
    {DType::kF8E4M3FNUZ, 4, 3, 8, false, 0x80, 240.0, 248.0},
    {DType::kF8E5M2, 5, 2, 15, true, 0x7E, 57344.0, 61440.0},
    {DType::kF4E2M1, 2, 1, 1, false, 0, 6.0, 7.0},
};

double value_by_definition(const Format& f, std::uint64_t code) {
  const double sign = (code & f.sign()) != 0 ? -1.0 : 1.0;
  const auto magnitude = static_cast<double>(code % f.sign());
  const double steps = std::exp2(f.fraction_bits);
  const double exponent = std::floor(magnitude / steps);
  const double fraction = magnitude - exponent * steps;
  if (f.ieee_specials && exponent == std::exp2(f.exponent_bits) - 1) {
    return sign * (fraction == 0 ? kInf : kNaN);
  }
  if (f.type == DType::kF8E4M3FN && code % f.sign() == 0x7F) return kNaN;
  if (f.type == DType::kF8E4M3FNUZ && code == 0x80) return kNaN;
  if (exponent == 0) return sign * fraction / steps * std::exp2(1 - f.bias);
  return sign * (1 + fraction / steps) * std::exp2(exponent - f.bias);
}

class SmallFloat : public testing::TestWithParam<Format> {
 protected:
  const Format& f = GetParam();

  std::vector<std::uint64_t> codes() const {
    std::vector<std::uint64_t> all;
    for (std::uint64_t code = 0; code < f.num_codes(); ++code) all.push_back(code);
    return all;
  }
  // Neighbouring finite codes (lower, lower + 1) of positive values.
  std::vector<std::uint64_t> lower_neighbours() const {
    std::vector<std::uint64_t> all;
    for (std::uint64_t code = 0; value_by_definition(f, code) < f.largest; ++code) {
      all.push_back(code);
    }
    return all;
  }
  // Code of -value, given the code of value >= 0.
  std::uint64_t negated(std::uint64_t code) const {
    return code == 0 && !f.has_minus_zero() ? 0 : code | f.sign();
  }
  void expect_codes(double value, std::uint64_t code) const {
    for (const Overflow overflow : kBothOverflows) {
      EXPECT_EQ(encode(f.type, value, overflow), code) << value;
      EXPECT_EQ(encode(f.type, -value, overflow), negated(code)) << -value;
    }
  }
};

TEST_P(SmallFloat, DecodesEveryCode) {
  for (const std::uint64_t code : codes()) {
    const double expected = value_by_definition(f, code);
    const double actual = decode(f.type, code);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(actual)) << code;
    } else {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(actual), std::bit_cast<std::uint64_t>(expected))
          << code << ": " << actual << " " << expected;
    }
  }
}

TEST_P(SmallFloat, IgnoresBitsAboveTheCode) {
  EXPECT_EQ(decode(f.type, 1 | f.num_codes()), value_by_definition(f, 1));
}

TEST_P(SmallFloat, LargestFiniteValueIsThatOfTheSpecification) {
  double largest = 0.0;
  for (const std::uint64_t code : codes()) {
    const double value = decode(f.type, code);
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  EXPECT_EQ(largest, f.largest);
}

TEST_P(SmallFloat, EncodesEveryValueBackToItsCode) {
  for (const std::uint64_t code : codes()) {
    const double value = value_by_definition(f, code);
    if (std::isnan(value)) continue;
    EXPECT_EQ(encode(f.type, value, Overflow::kInfinity), code);
    if (std::isfinite(value)) {
      EXPECT_EQ(encode(f.type, value, Overflow::kSaturate), code);
    }
  }
}

TEST_P(SmallFloat, RoundsTiesToEvenCodes) {
  for (const std::uint64_t low : lower_neighbours()) {
    const double middle = (value_by_definition(f, low) + value_by_definition(f, low + 1)) / 2;
    expect_codes(middle, low % 2 == 0 ? low : low + 1);
  }
}

TEST_P(SmallFloat, RoundsToTheNearerNeighbourBesideATie) {
  for (const std::uint64_t low : lower_neighbours()) {
    const double middle = (value_by_definition(f, low) + value_by_definition(f, low + 1)) / 2;
    expect_codes(std::nextafter(middle, 0.0), low);
    expect_codes(std::nextafter(middle, kInf), low + 1);
  }
}

TEST_P(SmallFloat, TinyValuesBecomeZeroWithTheirSign) {
  for (const double tiny : {std::numeric_limits<double>::denorm_min(), 0x1p-1000}) {
    expect_codes(tiny, 0);
  }
}

TEST_P(SmallFloat, ZerosKeepTheirSignWhereThereAreTwo) { expect_codes(0.0, 0); }

TEST_P(SmallFloat, ValuesThatRoundToTheLargestDoNotOverflow) {
  expect_codes(std::nextafter(f.first_too_large, 0.0), encode(f.type, f.largest, {}));
}

TEST_P(SmallFloat, SaturatesWhenAskedTo) {
  for (const double big : {f.first_too_large, 1e300, kInf}) {
    const std::uint64_t code = encode(f.type, big, Overflow::kSaturate);
    EXPECT_EQ(value_by_definition(f, code), f.largest) << big;
    EXPECT_EQ(encode(f.type, -big, Overflow::kSaturate), code | f.sign()) << big;
  }
}

TEST_P(SmallFloat, OverflowsToInfinityOrNaNWhereThereIsOne) {
  const bool saturates = f.nan == 0;
  for (const double big : {f.first_too_large, 1e300, kInf}) {
    const double up = decode(f.type, encode(f.type, big, Overflow::kInfinity));
    const double down = decode(f.type, encode(f.type, -big, Overflow::kInfinity));
    if (f.ieee_specials || saturates) {
      EXPECT_EQ(up, saturates ? f.largest : kInf) << big;
      EXPECT_EQ(down, saturates ? -f.largest : -kInf) << big;
    } else {
      EXPECT_TRUE(std::isnan(up) && std::isnan(down)) << big;
    }
  }
}

TEST_P(SmallFloat, NaNKeepsItsSignAndBecomesQuiet) {
  for (const Overflow overflow : kBothOverflows) {
    if (f.nan == 0) {
      EXPECT_THROW(encode(f.type, kNaN, overflow), Error);
      continue;
    }
    EXPECT_EQ(encode(f.type, kNaN, overflow), f.nan);
    EXPECT_EQ(encode(f.type, -kNaN, overflow), f.nan | f.sign());  // e4m3fnuz: its only NaN
    EXPECT_EQ(encode(f.type, std::numeric_limits<double>::signaling_NaN(), overflow), f.nan);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, SmallFloat, testing::ValuesIn(kFormats),
                         [](const auto& format) { return std::string(name(format.param.type)); });

TEST(DType, E2M1HoldsTheValuesOfTheMxSpecification) {
  constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (std::uint64_t code = 0; code < 8; ++code) {
    EXPECT_EQ(decode(DType::kF4E2M1, code), kValues[code]);
    EXPECT_EQ(decode(DType::kF4E2M1, code + 8), -kValues[code]);
  }
}

TEST(DType, E4M3NuzCodeOfNaNHasNoSign) {
  EXPECT_EQ(encode(DType::kF8E4M3FNUZ, -kNaN, Overflow::kInfinity), 0x80u);
  EXPECT_EQ(encode(DType::kF8E4M3FNUZ, kNaN, Overflow::kInfinity), 0x80u);
}

TEST(DType, E8M0DecodesEveryCode) {
  for (std::uint64_t code = 0; code < 255; ++code) {
    EXPECT_EQ(decode(DType::kF8E8M0, code), std::exp2(static_cast<double>(code) - 127));
  }
  EXPECT_TRUE(std::isnan(decode(DType::kF8E8M0, 0xFF)));
}

TEST(DType, E8M0RoundsToTheNearestValueAndTiesToEvenCodes) {
  for (std::uint64_t code = 0; code < 254; ++code) {
    const double value = std::exp2(static_cast<double>(code) - 127);
    for (const Overflow overflow : kBothOverflows) {
      const auto encoded = [&](double x) { return encode(DType::kF8E8M0, x, overflow); };
      EXPECT_EQ(encoded(value), code);
      EXPECT_EQ(encoded(1.5 * value), code % 2 == 0 ? code : code + 1);
      EXPECT_EQ(encoded(std::nextafter(1.5 * value, 0.0)), code);
      EXPECT_EQ(encoded(std::nextafter(1.5 * value, kInf)), code + 1);
    }
  }
}

TEST(DType, E8M0SmallValuesBecomeTheSmallest) {
  EXPECT_EQ(encode(DType::kF8E8M0, 0x1p-127 / 3, Overflow::kInfinity), 0u);
  EXPECT_EQ(encode(DType::kF8E8M0, std::numeric_limits<double>::denorm_min(), {}), 0u);
}

TEST(DType, E8M0OverflowsToNaNOrSaturates) {
  EXPECT_EQ(encode(DType::kF8E8M0, 0x1.8p127, Overflow::kInfinity), 0xFEu);
  for (const double big : {0x1.8000000000001p127, 0x1p128, 1e300, kInf}) {
    EXPECT_EQ(encode(DType::kF8E8M0, big, Overflow::kSaturate), 0xFEu) << big;
    EXPECT_EQ(encode(DType::kF8E8M0, big, Overflow::kInfinity), 0xFFu) << big;
  }
}

TEST(DType, E8M0TakesPositiveNumbersAndNaNOnly) {
  EXPECT_EQ(encode(DType::kF8E8M0, kNaN, Overflow::kSaturate), 0xFFu);
  for (const double bad : {0.0, -0.0, -1.0, -kInf}) {
    EXPECT_THROW(encode(DType::kF8E8M0, bad, Overflow::kSaturate), Error) << bad;
  }
}

TEST(DType, F32RoundsAsTheProcessorDoes) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    // Random bits, and random bits with an exponent that a float has.
    std::uint64_t bits = random();
    if (i % 2 == 0) bits = (bits & 0x800FFFFFFFFFFFFFu) | ((870 + bits % 300) << 52);
    const auto value = std::bit_cast<double>(bits);
    if (std::isnan(value)) continue;
    const auto expected = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    EXPECT_EQ(encode(DType::kF32, value, Overflow::kInfinity), expected) << value;
    const double back = decode(DType::kF32, expected);
    EXPECT_EQ(back, static_cast<double>(static_cast<float>(value)));
  }
}

TEST(DType, F32SaturatesAndKeepsNaNSigns) {
  EXPECT_EQ(encode(DType::kF32, 1e39, Overflow::kSaturate), 0x7F7FFFFFu);
  EXPECT_EQ(encode(DType::kF32, -kInf, Overflow::kSaturate), 0xFF7FFFFFu);
  EXPECT_EQ(encode(DType::kF32, -1e39, Overflow::kInfinity), 0xFF800000u);
  EXPECT_EQ(encode(DType::kF32, kNaN, Overflow::kInfinity), 0x7FC00000u);
  EXPECT_EQ(encode(DType::kF32, -kNaN, Overflow::kSaturate), 0xFFC00000u);
}

TEST(DType, F64IsItself) {
  EXPECT_EQ(encode(DType::kF64, -1.5, Overflow::kInfinity), 0xBFF8000000000000u);
  EXPECT_EQ(decode(DType::kF64, 0xBFF8000000000000u), -1.5);
  EXPECT_EQ(encode(DType::kF64, -kInf, Overflow::kInfinity), 0xFFF0000000000000u);
  EXPECT_EQ(encode(DType::kF64, -kInf, Overflow::kSaturate), 0xFFEFFFFFFFFFFFFFu);
}

TEST(DType, NamesAreThoseOfCaseFilesAndRoundTrip) {
  constexpr std::string_view kNames[] = {
      "f64",  "f32",       "f16",         "bf16",    "i64",     "i32",     "i8", "u8",
      "bool", "f8_e4m3fn", "f8_e4m3fnuz", "f8_e5m2", "f8_e8m0", "f4_e2m1", "i4"};
  std::size_t i = 0;
  for (const DType type : kAllDTypes) {
    EXPECT_EQ(name(type), kNames[i]);
    EXPECT_EQ(dtype_from_name(kNames[i]), type);
    ++i;
  }
  EXPECT_EQ(dtype_from_name("float32"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
}

TEST(DType, SizesCountUnits) {
  const std::vector<int> bits_of = {64, 32, 16, 16, 64, 32, 8, 8, 8, 8, 8, 8, 8, 4, 4};
  std::size_t i = 0;
  for (const DType type : kAllDTypes) {
    EXPECT_EQ(bits(type), bits_of[i]) << name(type);
    EXPECT_EQ(unit_bytes(type), bits_of[i] == 4 ? 1 : bits_of[i] / 8) << name(type);
    EXPECT_EQ(elements_per_unit(type), bits_of[i] == 4 ? 2 : 1) << name(type);
    ++i;
  }
}

TEST(DType, RealTypesAreFloating) {
  for (const DType type : kAllDTypes) {
    const bool named_f = name(type).front() == 'f' || name(type) == "bf16";
    EXPECT_EQ(is_floating(type), named_f) << name(type);
  }
}

TEST(DType, LoadsAndStoresLittleEndianAtAnyAddress) {
  for (const DType type : kAllDTypes) {
    std::array<unsigned char, 10> memory;
    memory.fill(0xAA);
    store_code(type, 0x8877665544332211u, memory.data() + 1);
    const auto size = static_cast<std::size_t>(unit_bytes(type));
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < size; ++i) {
      EXPECT_EQ(memory[1 + i], 0x11 * (i + 1));
      expected |= static_cast<std::uint64_t>(0x11 * (i + 1)) << (8 * i);
    }
    EXPECT_EQ(memory[0], 0xAA);
    EXPECT_EQ(memory[1 + size], 0xAA) << name(type);
    EXPECT_EQ(load_code(type, memory.data() + 1), expected) << name(type);
  }
}

}  // namespace
}  // namespace attn
