#include "golden/exact/rounding.h"

#include <cmath>
#include <limits>

#include "attn/dtype.h"

namespace attn::exact {
namespace {

// Settled numbers are multiples of 2^this.
mpfr_exp_t exponent_of_unit(const Real& x, const Real& size) {
  return mpfr_get_exp(size.get()) - (x.bits() - kGuardBits);
}

double positive_zero(double x) { return x == 0.0 ? 0.0 : x; }

std::uint8_t code_of(double x) {
  return static_cast<std::uint8_t>(encode(DType::kF8E4M3FN, x, Overflow::kSaturate));
}

}  // namespace

Real settled(const Real& x, const Real& size) {
  if (!x.is_finite() || x.is_zero() || !size.is_finite() || size.is_zero()) return x;
  const mpfr_exp_t unit = exponent_of_unit(x, size);
  Real in_units = x;
  mpfr_mul_2si(in_units.get(), in_units.get(), -unit, MPFR_RNDN);
  mpfr_roundeven(in_units.get(), in_units.get());
  mpfr_mul_2si(in_units.get(), in_units.get(), unit, MPFR_RNDN);
  return in_units;
}

bool cancels(const Real& x, const Real& size) {
  constexpr mpfr_exp_t kBelowEveryDouble = -1080;
  return size.is_finite() && !size.is_zero() && settled(x, size).is_zero() &&
         exponent_of_unit(x, size) > kBelowEveryDouble;
}

Real settled(const Real& x) { return settled(x, x); }

double to_f64(const Real& x, const Real& size) {
  if (x.is_nan()) return std::numeric_limits<double>::quiet_NaN();
  return positive_zero(mpfr_get_d(settled(x, size).get(), MPFR_RNDN));
}

float to_f32_upward(const Real& x) {
  if (x.is_nan()) return std::numeric_limits<float>::infinity();
  const float rounded = mpfr_get_flt(settled(x).get(), MPFR_RNDU);
  return rounded == 0.0F ? 0.0F : rounded;
}

double to_f64_upward(const Real& x) {
  if (x.is_nan()) return std::numeric_limits<double>::infinity();
  return positive_zero(mpfr_get_d(settled(x).get(), MPFR_RNDU));
}

double to_f64_downward(const Real& x) {
  if (x.is_nan()) return -std::numeric_limits<double>::infinity();
  return positive_zero(mpfr_get_d(settled(x).get(), MPFR_RNDD));
}

OutCode to_out_code(const Real& quotient, const Real& size) {
  const double nearest = to_f64(quotient, size);
  OutCode result{code_of(nearest), false};
  if (!quotient.is_finite()) return result;
  // A double is 2^13 times finer than the margin, so these two decide.
  const double margin = std::ldexp(std::fabs(nearest), -40);
  result.refused = code_of(nearest - margin) != code_of(nearest + margin);
  return result;
}

}  // namespace attn::exact
