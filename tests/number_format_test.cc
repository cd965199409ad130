// Formats against the codes of the types they describe.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "attn/arithmetic.h"
#include "attn/dtype.h"

namespace attn {
namespace {

using F = NumberFormat;

// Every finite value >= 0 of a type of at most 16 bits, ascending.
std::vector<double> magnitudes(DType type) {
  std::set<double> values;
  for (std::uint64_t code = 0; code < std::uint64_t{1} << bits(type); ++code) {
    const double value = decode(type, code);
    if (std::isfinite(value)) values.insert(std::fabs(value));
  }
  return {values.begin(), values.end()};
}

// The largest |round(x) - x| / |x| over reals x between the value at `i` and the next: half the
// step, at the lower end.
double relative_error_above(const std::vector<double>& values, std::size_t i) {
  return (values[i + 1] - values[i]) / 2.0 / values[i];
}

constexpr DType kSmallFloats[] = {DType::kF16, DType::kBF16, DType::kF8E4M3FN, DType::kF8E5M2};

TEST(NumberFormats, LimitsAreThoseOfTheCodes) {
  for (const DType type : kSmallFloats) {
    const F format = format_of(type).value();
    const std::vector<double> values = magnitudes(type);
    EXPECT_EQ(largest_finite(format), values.back()) << name(type);
    EXPECT_EQ(half_quantum(format), values[1] / 2.0) << name(type);

    // Steps are relative from the smallest normal number on, of the size of twice u.
    const double u = unit_roundoff(format);
    std::size_t first = values.size() - 1;
    while (first > 1 && relative_error_above(values, first - 1) <= u) --first;
    EXPECT_EQ(smallest_normal(format), values[first]) << name(type);
    EXPECT_EQ(relative_error_above(values, first), u) << name(type);
  }
}

TEST(NumberFormats, LimitsAreThoseOfTheLanguage) {
  EXPECT_EQ(unit_roundoff(F::kF64), std::numeric_limits<double>::epsilon() / 2);
  EXPECT_EQ(smallest_normal(F::kF64), std::numeric_limits<double>::min());
  EXPECT_EQ(largest_finite(F::kF64), std::numeric_limits<double>::max());
  EXPECT_EQ(half_quantum(F::kF64), std::numeric_limits<double>::denorm_min());  // half is no double

  EXPECT_EQ(unit_roundoff(F::kF32), std::numeric_limits<float>::epsilon() / 2);
  EXPECT_EQ(smallest_normal(F::kF32), std::numeric_limits<float>::min());
  EXPECT_EQ(largest_finite(F::kF32), std::numeric_limits<float>::max());
  EXPECT_EQ(half_quantum(F::kF32), double{std::numeric_limits<float>::denorm_min()} / 2);
}

TEST(NumberFormats, Tf32HasTheExponentsOfF32AndTheFractionOfF16) {
  EXPECT_EQ(unit_roundoff(F::kTF32), unit_roundoff(F::kF16));
  EXPECT_EQ(smallest_normal(F::kTF32), smallest_normal(F::kF32));
  EXPECT_EQ(half_quantum(F::kTF32), smallest_normal(F::kF32) * unit_roundoff(F::kF16));
  EXPECT_EQ(largest_finite(F::kTF32), 0x1p128 * (1.0 - unit_roundoff(F::kF16)));
}

TEST(NumberFormats, ExactHasNoError) {
  EXPECT_EQ(unit_roundoff(F::kExact), 0.0);
  EXPECT_EQ(half_quantum(F::kExact), 0.0);
  EXPECT_EQ(smallest_normal(F::kExact), 0.0);
  EXPECT_EQ(largest_finite(F::kExact), std::numeric_limits<double>::infinity());
}

TEST(NumberFormats, HaveTheNamesOfTheirTypes) {
  for (const DType type :
       {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3FN, DType::kF8E5M2}) {
    EXPECT_EQ(name(format_of(type).value()), name(type));
  }
  EXPECT_EQ(name(F::kExact), "exact");
  EXPECT_EQ(name(F::kTF32), "tf32");
  EXPECT_EQ(name(F::kStored), "stored");
  for (const DType type : {DType::kI64, DType::kI8, DType::kBool, DType::kF8E4M3FNUZ,
                           DType::kF8E8M0, DType::kF4E2M1, DType::kI4}) {
    EXPECT_EQ(format_of(type), std::nullopt) << name(type);
  }
}

// Rounded to the format by its definition: a multiple of the step of its binade, not beyond the
// largest.
bool is_value_of(double x, F format) {
  const double magnitude = std::fabs(x);
  if (magnitude > largest_finite(format)) return false;
  const double binade = std::max(magnitude == 0.0 ? 0.0 : std::ldexp(1.0, std::ilogb(magnitude)),
                                 smallest_normal(format));
  return std::fmod(magnitude, binade * 2.0 * unit_roundoff(format)) == 0.0;
}

TEST(NumberFormats, SmallTypesEmbedExactlyWhereEveryCodeIsAValue) {
  int embedded = 0;
  for (const DType type : kAllDTypes) {
    if (bits(type) > 16) continue;
    const std::vector<double> values = magnitudes(type);
    for (const F format :
         {F::kF64, F::kF32, F::kTF32, F::kF16, F::kBF16, F::kF8E4M3FN, F::kF8E5M2}) {
      const bool all = std::all_of(values.begin(), values.end(),
                                   [&](double x) { return is_value_of(x, format); });
      EXPECT_EQ(embeds(type, format), all) << name(type) << " in " << name(format);
      embedded += all ? 1 : 0;
    }
    EXPECT_TRUE(embeds(type, F::kExact));
    EXPECT_FALSE(embeds(type, F::kStored));
  }
  EXPECT_GT(embedded, 40);
}

TEST(NumberFormats, WideTypesEmbedInNothingNarrower) {
  EXPECT_TRUE(embeds(DType::kF64, F::kF64));
  EXPECT_FALSE(embeds(DType::kF64, F::kF32));
  EXPECT_TRUE(embeds(DType::kF32, F::kF64));
  EXPECT_TRUE(embeds(DType::kF32, F::kF32));
  EXPECT_FALSE(embeds(DType::kF32, F::kTF32));
  EXPECT_TRUE(embeds(DType::kI32, F::kF64));
  EXPECT_FALSE(embeds(DType::kI32, F::kF32));
  EXPECT_FALSE(embeds(DType::kI64, F::kF64));
}

TEST(Roundings, TruncationDoublesTheirUnitsAndFlushingRaisesTheQuantum) {
  Rounding r{F::kF16};
  EXPECT_EQ(r.unit(), 0x1p-11);
  EXPECT_EQ(r.quantum(), 0x1p-25);
  r.mode = RoundingMode::kTruncate;
  EXPECT_EQ(r.unit(), 0x1p-10);
  EXPECT_EQ(r.quantum(), 0x1p-24);
  r.scale = 0x1p+4;
  EXPECT_EQ(r.unit(), 0x1p-10);
  EXPECT_EQ(r.quantum(), 0x1p-28);
  r.flush = true;
  EXPECT_EQ(r.quantum(), 0x1p-18);
  EXPECT_EQ(Rounding().unit(), 0.0);
  EXPECT_EQ(Rounding().quantum(), 0.0);
}

}  // namespace
}  // namespace attn
