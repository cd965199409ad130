#include "property_tests/number_rounder.h"

#include "core/special_values.h"

namespace attn::property_tests {
namespace {

int fraction_bits_of(NumberFormat format) { return -1 - std::ilogb(unit_roundoff(format)); }

}  // namespace

NumberRounder::NumberRounder(const Rounding& rounding)
    : NumberRounder(rounding,
                    unit_roundoff(rounding.type) > 0.0 ? fraction_bits_of(rounding.type) : 52) {}

NumberRounder::NumberRounder(const Rounding& rounding, int fraction_bits)
    : truncate_(rounding.mode == RoundingMode::kTruncate),
      flush_(rounding.flush),
      fraction_bits_(fraction_bits) {
  const NumberFormat format = rounding.type;
  if (unit_roundoff(format) == 0.0) return;
  smallest_normal_ = smallest_normal(format);
  min_normal_ = std::bit_cast<std::uint64_t>(smallest_normal_) & kExponent;
  quantum_ = smallest_normal_ * std::ldexp(1.0, -fraction_bits_of(format));
  if (format == NumberFormat::kF64) {
    kind_ = flush_ ? Kind::kF64Flush : Kind::kKeep;
    return;
  }
  drop_ = 52 - fraction_bits;
  half_ = std::uint64_t{1} << (drop_ - 1);
  scale_ = rounding.scale;
  inverse_scale_ = 1.0 / rounding.scale;
  largest_ = largest_finite(format);
  overflow_ = truncate_ || format == NumberFormat::kF8E4M3FN ? largest_ * inverse_scale_ : kInf;
  const bool plain = format == NumberFormat::kF32 && !truncate_ && !flush_ && scale_ == 1.0;
  kind_ = plain && fraction_bits == 23 ? Kind::kF32 : Kind::kGeneral;
}

double NumberRounder::below_normal(double y) const {
  if (flush_ && kind_ == Kind::kF64Flush) return std::copysign(0.0, y);
  double rounded;
  if (truncate_) {
    rounded = std::trunc(y / quantum_) * quantum_;
  } else {
    const double magic = 0x1.8p+52 * quantum_;  // its last place is one quantum
    rounded = (y + magic) - magic;
  }
  if (flush_ && std::fabs(rounded) < smallest_normal_) rounded = 0.0;
  return std::copysign(rounded, y);
}

double NumberRounder::special(double y, double x) const {
  if (std::isnan(y) || kind_ == Kind::kF64Flush) return x;
  const bool has_infinity = largest_ != largest_finite(NumberFormat::kF8E4M3FN);
  return has_infinity ? std::copysign(kInf, x) : std::copysign(overflow_, x);
}

double NumberRounder::between(double target, double exact) const {
  if (kind_ == Kind::kKeep || kind_ == Kind::kF64Flush || target * scale_ < smallest_normal_ ||
      !std::isfinite(target)) {
    return target;
  }
  const std::uint64_t step = std::uint64_t{1} << drop_;
  std::uint64_t bits = std::bit_cast<std::uint64_t>(target);
  const bool inexact = (bits & (step - 1)) != 0;
  bits &= ~(step - 1);
  if (inexact && target < exact) bits += step;
  const double rounded = std::bit_cast<double>(bits);
  return (target < exact ? rounded <= exact : rounded >= exact) ? rounded : target;
}

}  // namespace attn::property_tests
