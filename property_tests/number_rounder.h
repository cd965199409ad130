// Rounding of doubles to a number format, fast: what the software model does after each operation
// its contract names.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "attn/arithmetic.h"

namespace attn::property_tests {

// One rounding of a double: to nearest, ties to even, or toward zero. Values beyond the largest
// finite one become infinite, of f8_e4m3fn, which has no infinity, the largest one; truncated
// finite values stay finite. NaN stays, signs of zero too. Of f64 only `flush` does anything.
class NumberRounder {
 public:
  NumberRounder() = default;  // keeps every value
  explicit NumberRounder(const Rounding& rounding);
  // With another number of fraction bits than the format's, at least 1 and not more.
  NumberRounder(const Rounding& rounding, int fraction_bits);

  double operator()(double x) const {
    switch (kind_) {
      case Kind::kKeep:
        return x;
      case Kind::kF32:
        return static_cast<double>(static_cast<float>(x));
      default:
        return general(x);
    }
  }

  int fraction_bits() const { return fraction_bits_; }
  // Between neighbouring subnormals; 0 of what keeps every value.
  double quantum() const { return quantum_; }

  // A value of the format between `target` and `exact`, both positive: the one nearest to
  // `target`. `target` itself below the normal numbers.
  double between(double target, double exact) const;

 private:
  enum class Kind : std::uint8_t { kKeep, kF32, kF64Flush, kGeneral };
  static constexpr std::uint64_t kExponent = 0x7FF0000000000000;

  double general(double x) const {
    const double y = x * scale_;
    std::uint64_t bits = std::bit_cast<std::uint64_t>(y);
    if ((bits & kExponent) < min_normal_) return below_normal(y) * inverse_scale_;
    if ((bits & kExponent) == kExponent || kind_ == Kind::kF64Flush) return special(y, x);
    if (!truncate_) bits += half_ - 1 + (bits >> drop_ & 1);
    bits &= ~((std::uint64_t{1} << drop_) - 1);
    const double rounded = std::bit_cast<double>(bits);
    if (std::fabs(rounded) > largest_) return std::copysign(overflow_, x);
    return rounded * inverse_scale_;
  }

  double below_normal(double y) const;
  double special(double y, double x) const;

  Kind kind_ = Kind::kKeep;
  bool truncate_ = false;
  bool flush_ = false;
  int fraction_bits_ = 52;
  int drop_ = 0;
  std::uint64_t half_ = 0;
  std::uint64_t min_normal_ = 0;  // exponent field of the smallest normal
  double smallest_normal_ = 0.0;
  double quantum_ = 0.0;
  double largest_ = 0.0;
  double overflow_ = 0.0;  // what is beyond, unscaled
  double scale_ = 1.0;
  double inverse_scale_ = 1.0;
};

// x + y, rounded so that one more rounding to at most 51 bits gives the sum rounded once: to
// nearest, or its odd neighbour when inexact (Boldo and Melquiond: Emulation of FMA and correctly
// rounded sums, IEEE Transactions on Computers 57, 2008).
inline double sum_to_odd(double x, double y) {
  const double sum = x + y;
  const double part = sum - x;
  const double error = (x - (sum - part)) + (y - part);  // TwoSum (Knuth)
  std::uint64_t bits = std::bit_cast<std::uint64_t>(sum);
  if (!(error != 0.0) || (bits & 1) != 0 || !(std::fabs(sum) <= 0x1.fffffffffffffp+1023))
    return sum;
  // The exact sum lies on the side of `error`: an even neighbour is left for the odd one there.
  bits = (error > 0.0) == (sum > 0.0) ? bits + 1 : bits - 1;
  return std::bit_cast<double>(bits);
}

}  // namespace attn::property_tests
