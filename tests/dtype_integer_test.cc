// The integer types of attn/dtype.h.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "attn/dtype.h"
#include "attn/error.h"
#include "core/special_values.h"

namespace attn {
namespace {

std::uint64_t encoded(DType type, double value) { return encode(type, value, Overflow::kInfinity); }

TEST(IntegerDType, DecodesEveryCodeOfATwosComplementType) {
  for (std::uint64_t code = 0; code < 256; ++code) {
    EXPECT_EQ(decode(DType::kI8, code), static_cast<std::int8_t>(code));
    EXPECT_EQ(decode(DType::kU8, code), static_cast<double>(code));
  }
  constexpr double kI4Values[] = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
  for (std::uint64_t code = 0; code < 16; ++code) {
    EXPECT_EQ(decode(DType::kI4, code), kI4Values[code]);
    EXPECT_EQ(decode(DType::kI4, code | 0xF0), kI4Values[code]) << "higher bits are ignored";
  }
}

TEST(IntegerDType, EncodesEveryValueBackToItsCode) {
  for (std::uint64_t code = 0; code < 256; ++code) {
    EXPECT_EQ(encoded(DType::kI8, decode(DType::kI8, code)), code);
    EXPECT_EQ(encoded(DType::kU8, decode(DType::kU8, code)), code);
  }
  for (std::uint64_t code = 0; code < 16; ++code) {
    EXPECT_EQ(encoded(DType::kI4, decode(DType::kI4, code)), code);
  }
}

TEST(IntegerDType, RoundsHalfToEven) {
  for (const DType type : {DType::kI4, DType::kI8, DType::kI32, DType::kI64}) {
    const auto there_and_back = [type](double x) { return decode(type, encoded(type, x)); };
    EXPECT_EQ(there_and_back(0.5), 0.0);
    EXPECT_EQ(there_and_back(1.5), 2.0);
    EXPECT_EQ(there_and_back(2.5), 2.0);
    EXPECT_EQ(there_and_back(-0.5), 0.0);
    EXPECT_EQ(there_and_back(-1.5), -2.0);
    EXPECT_EQ(there_and_back(-2.5), -2.0);
    EXPECT_EQ(there_and_back(std::nextafter(0.5, 1.0)), 1.0);
    EXPECT_EQ(there_and_back(std::nextafter(-1.5, 0.0)), -1.0);
  }
  EXPECT_EQ(encoded(DType::kU8, 254.5), 254u);
  EXPECT_EQ(encoded(DType::kU8, 0.5), 0u);
}

TEST(IntegerDType, SaturatesInBothModes) {
  struct Limits {
    DType type;
    std::uint64_t lowest, highest;
  };
  for (const Limits& limits :
       {Limits{DType::kI4, 0x8, 0x7}, Limits{DType::kI8, 0x80, 0x7F}, Limits{DType::kU8, 0, 0xFF},
        Limits{DType::kI32, 0x80000000u, 0x7FFFFFFFu},
        Limits{DType::kI64, 0x8000000000000000u, 0x7FFFFFFFFFFFFFFFu}}) {
    for (const Overflow overflow : {Overflow::kInfinity, Overflow::kSaturate}) {
      for (const double big : {0x1p63, 1e300, kInf}) {
        EXPECT_EQ(encode(limits.type, big, overflow), limits.highest) << name(limits.type);
        EXPECT_EQ(encode(limits.type, -big, overflow), limits.lowest) << name(limits.type);
      }
    }
  }
}

TEST(IntegerDType, SaturatesJustBeyondTheRange) {
  EXPECT_EQ(encoded(DType::kI8, 127.4), 0x7Fu);
  EXPECT_EQ(encoded(DType::kI8, 127.5), 0x7Fu);
  EXPECT_EQ(encoded(DType::kI8, -128.5), 0x80u);
  EXPECT_EQ(encoded(DType::kI8, -129.0), 0x80u);
  EXPECT_EQ(encoded(DType::kI4, 8.0), 0x7u);
  EXPECT_EQ(encoded(DType::kI32, 2147483647.0), 0x7FFFFFFFu);
  EXPECT_EQ(encoded(DType::kI32, 2147483648.0), 0x7FFFFFFFu);
  EXPECT_EQ(encoded(DType::kU8, -0.75), 0u);
}

TEST(IntegerDType, I64BeyondTheSignificandRoundsToNearest) {
  EXPECT_EQ(decode(DType::kI64, (std::uint64_t{1} << 53) + 1), 0x1p53);
  EXPECT_EQ(decode(DType::kI64, (std::uint64_t{1} << 53) + 3), 0x1p53 + 4);
  EXPECT_EQ(decode(DType::kI64, 0x7FFFFFFFFFFFFFFFu), 0x1p63);
  EXPECT_EQ(decode(DType::kI64, 0x8000000000000000u), -0x1p63);
  EXPECT_EQ(decode(DType::kI64, ~std::uint64_t{0}), -1.0);
}

TEST(IntegerDType, I32IgnoresHigherBits) {
  EXPECT_EQ(decode(DType::kI32, 0xFFFFFFFFu), -1.0);
  EXPECT_EQ(decode(DType::kI32, 0x100000001u), 1.0);
}

TEST(IntegerDType, AnyValueButZeroIsTrue) {
  EXPECT_EQ(encoded(DType::kBool, 0.0), 0u);
  EXPECT_EQ(encoded(DType::kBool, -0.0), 0u);
  EXPECT_EQ(encoded(DType::kBool, 0.25), 1u);
  EXPECT_EQ(encoded(DType::kBool, -3.0), 1u);
  EXPECT_EQ(decode(DType::kBool, 0), 0.0);
  EXPECT_EQ(decode(DType::kBool, 1), 1.0);
}

TEST(IntegerDType, NaNHasNoCode) {
  for (const DType type : {DType::kI64, DType::kI32, DType::kI8, DType::kU8, DType::kI4}) {
    try {
      encoded(type, kNaN);
      ADD_FAILURE() << name(type);
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "NaN has no code in " + std::string(name(type)));
    }
  }
}

}  // namespace
}  // namespace attn
