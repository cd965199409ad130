// The last step: from a computed number to the bytes that are stored.
//
// A computed number is wrong by a few units of its last places. Where the true value is a number of
// the target format or halfway between two (a mean of equal values, a mass of 1, a sum that is 0),
// that error alone would decide the last bit, and rounding upward would add one. So a number is
// settled first: rounded to nearest at kGuardBits fewer bits, counted from the size of what was
// summed, not from what cancellation left of it. Then exact values are themselves again. The price:
// a true value nearer to a number of the format than 2^-(bits - kGuardBits) of that size, but not
// equal to it, is taken for it.
#pragma once

#include <cstdint>

#include "golden/exact/real.h"

namespace attn::exact {

inline constexpr int kGuardBits = 40;

// `size` bounds the terms `x` was summed from; what is not finite stays as it is.
Real settled(const Real& x, const Real& size);

// Nothing but 0 is left of terms that a double could tell from 0: they cancel, or more bits would
// show what is left.
bool cancels(const Real& x, const Real& size);

// As settled, where nothing cancels: the size of `x` is that of its terms.
Real settled(const Real& x);

// Settle, then round to nearest even. Zero is +0, NaN 0x7ff8000000000000, subnormals are kept.
double to_f64(const Real& x, const Real& size);

// Settle, then round toward +inf (-inf); NaN is the largest (smallest) value there is: unknown.
float to_f32_upward(const Real& x);
double to_f64_upward(const Real& x);
double to_f64_downward(const Real& x);

// The f8_e4m3fn code nearest to `quotient`, saturating, NaN 0x7F. `refused`: the quotient lies
// within 2^-40 of itself of a place where the code changes, so another arithmetic may choose its
// neighbour.
struct OutCode {
  std::uint8_t code = 0;
  bool refused = false;
};
OutCode to_out_code(const Real& quotient, const Real& size);

}  // namespace attn::exact
