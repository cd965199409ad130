#include "judge/telemetry.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "attn/arithmetic.h"

namespace attn::judge {
namespace {

constexpr std::uint64_t kExponentMask = 0x7FF;
constexpr int kFractionBits = 52;

std::uint64_t biased_exponent(double x) {
  return (std::bit_cast<std::uint64_t>(x) >> kFractionBits) & kExponentMask;
}

}  // namespace

TelemetryTally::TelemetryTally(DType stored)
    : units_in_binade_(0.5 / unit_roundoff(answer_format(stored))),
      lowest_exponent_(biased_exponent(smallest_normal(answer_format(stored)))) {}

void TelemetryTally::add(std::span<const double> expected, std::span<const double> actual) {
  // Sums of a row first: fewer roundings, and registers.
  double errors = 0.0, expected_squares = 0.0, actual_squares = 0.0, products = 0.0;
  double max_abs = max_abs_, max_rel = max_rel_, max_in_binades = max_in_binades_;
  for (std::size_t j = 0; j < expected.size(); ++j) {
    const double e = expected[j];
    const double a = actual[j];
    const double error = std::fabs(a - e);
    errors += error * error;
    expected_squares += e * e;
    actual_squares += a * a;
    products += a * e;
    const double relative = error / std::fabs(e);  // 0 / 0 is NaN, which no maximum takes
    // 1 / 2^floor(log2 |e|), the exponent held within the stored type's normal numbers and below
    // 2^1023, whose reciprocal is none.
    const std::uint64_t exponent =
        std::clamp<std::uint64_t>(biased_exponent(e), lowest_exponent_, 2045);
    const double inverse = std::bit_cast<double>((2046 - exponent) << kFractionBits);
    const double in_binades = error * inverse;
    max_abs = error > max_abs ? error : max_abs;
    max_rel = relative > max_rel ? relative : max_rel;
    max_in_binades = in_binades > max_in_binades ? in_binades : max_in_binades;
  }
  squared_errors_ += errors;
  squared_expected_ += expected_squares;
  squared_actual_ += actual_squares;
  products_ += products;
  max_abs_ = max_abs;
  max_rel_ = max_rel;
  max_in_binades_ = max_in_binades;
}

Telemetry TelemetryTally::result() const {
  Telemetry t;
  t.nmse = squared_errors_ == 0.0 ? 0.0 : squared_errors_ / squared_expected_;
  const bool both_zero = squared_expected_ == 0.0 && squared_actual_ == 0.0;
  const double norms = std::sqrt(squared_expected_) * std::sqrt(squared_actual_);
  const double cosine = norms == 0.0 ? 0.0 : products_ / norms;
  t.cosine = both_zero || cosine > 1.0 ? 1.0 : cosine;  // NaN, of squares that overflow, stays
  t.max_ulp = max_in_binades_ * units_in_binade_;
  t.max_abs = max_abs_;
  t.max_rel = max_rel_;
  return t;
}

}  // namespace attn::judge
