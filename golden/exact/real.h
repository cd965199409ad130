// A binary floating-point number of a chosen precision (MPFR), with exponents within +-2^30: sums
// and products of doubles neither overflow nor underflow, nor does e^x for |x| < 7 * 10^8.
#pragma once

#include <mpfr.h>

#include <cstdint>
#include <vector>

namespace attn::exact {

// The precision belongs to the number; there is no default that threads would share. Results are
// rounded to nearest even. Infinities and NaN behave as in IEEE 754: inf - inf, 0 * inf and 0 / 0
// are NaN.
class Real {
 public:
  explicit Real(int bits, double value = 0.0);  // `value` exactly: bits >= 53
  Real(const Real& other);
  Real(Real&& other) noexcept;
  Real& operator=(const Real& other);  // takes the precision too
  Real& operator=(Real&& other) noexcept;
  ~Real();

  int bits() const { return static_cast<int>(mpfr_get_prec(value_)); }
  bool is_nan() const { return mpfr_nan_p(value_) != 0; }
  bool is_infinite() const { return mpfr_inf_p(value_) != 0; }
  bool is_finite() const { return mpfr_number_p(value_) != 0; }
  bool is_zero() const { return mpfr_zero_p(value_) != 0; }
  bool is_negative() const { return mpfr_signbit(value_) != 0; }

  // Round to this number's precision.
  Real& operator+=(const Real& b);
  Real& operator-=(const Real& b);
  Real& operator*=(const Real& b);
  Real& operator/=(const Real& b);
  void add_product(const Real& a, const Real& b);  // *this += a * b, rounded once

  // Results have the precision of the first operand.
  friend Real operator+(Real a, const Real& b) { return a += b; }
  friend Real operator-(Real a, const Real& b) { return a -= b; }
  friend Real operator*(Real a, const Real& b) { return a *= b; }
  friend Real operator/(Real a, const Real& b) { return a /= b; }

  // False with a NaN.
  friend bool operator<(const Real& a, const Real& b) {
    return mpfr_less_p(a.value_, b.value_) != 0;
  }

  mpfr_srcptr get() const { return value_; }
  mpfr_ptr get() { return value_; }

 private:
  mpfr_t value_;
};

Real abs(Real x);
Real exp(Real x);
Real log(Real x);
Real sqrt(Real x);
Real tanh(Real x);
Real log_of_2(int bits);

// The larger one; NaN when either is.
Real max(const Real& a, const Real& b);

std::vector<Real> zeros(std::int64_t count, int bits);

// MPFR keeps constants for each thread. Frees this thread's at the end of a scope, so that threads
// that end leave nothing behind.
class ThreadCaches {
 public:
  ThreadCaches() = default;
  ThreadCaches(const ThreadCaches&) = delete;
  ThreadCaches& operator=(const ThreadCaches&) = delete;
  ~ThreadCaches() { mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE); }
};

}  // namespace attn::exact
