#include "golden/exact/real.h"

namespace attn::exact {

Real::Real(int bits, double value) {
  mpfr_init2(value_, bits);
  mpfr_set_d(value_, value, MPFR_RNDN);
}

Real::Real(const Real& other) {
  mpfr_init2(value_, mpfr_get_prec(other.value_));
  mpfr_set(value_, other.value_, MPFR_RNDN);
}

// A number moved from owns no memory; it can be destroyed or assigned to.
Real::Real(Real&& other) noexcept {
  value_[0] = other.value_[0];
  other.value_[0]._mpfr_d = nullptr;
}

Real& Real::operator=(const Real& other) {
  if (this == &other) return *this;
  if (value_[0]._mpfr_d == nullptr) {
    mpfr_init2(value_, mpfr_get_prec(other.value_));
  } else if (mpfr_get_prec(value_) != mpfr_get_prec(other.value_)) {
    mpfr_set_prec(value_, mpfr_get_prec(other.value_));
  }
  mpfr_set(value_, other.value_, MPFR_RNDN);
  return *this;
}

Real& Real::operator=(Real&& other) noexcept {
  mpfr_swap(value_, other.value_);
  return *this;
}

Real::~Real() {
  if (value_[0]._mpfr_d != nullptr) mpfr_clear(value_);
}

Real& Real::operator+=(const Real& b) {
  mpfr_add(value_, value_, b.value_, MPFR_RNDN);
  return *this;
}

Real& Real::operator-=(const Real& b) {
  mpfr_sub(value_, value_, b.value_, MPFR_RNDN);
  return *this;
}

Real& Real::operator*=(const Real& b) {
  mpfr_mul(value_, value_, b.value_, MPFR_RNDN);
  return *this;
}

Real& Real::operator/=(const Real& b) {
  mpfr_div(value_, value_, b.value_, MPFR_RNDN);
  return *this;
}

void Real::add_product(const Real& a, const Real& b) {
  mpfr_fma(value_, a.value_, b.value_, value_, MPFR_RNDN);
}

Real abs(Real x) {
  mpfr_abs(x.get(), x.get(), MPFR_RNDN);
  return x;
}

Real exp(Real x) {
  mpfr_exp(x.get(), x.get(), MPFR_RNDN);
  return x;
}

Real log(Real x) {
  mpfr_log(x.get(), x.get(), MPFR_RNDN);
  return x;
}

Real sqrt(Real x) {
  mpfr_sqrt(x.get(), x.get(), MPFR_RNDN);
  return x;
}

Real tanh(Real x) {
  mpfr_tanh(x.get(), x.get(), MPFR_RNDN);
  return x;
}

Real log_of_2(int bits) {
  Real x(bits);
  mpfr_const_log2(x.get(), MPFR_RNDN);
  return x;
}

Real max(const Real& a, const Real& b) {
  if (a.is_nan()) return a;
  return b.is_nan() || a < b ? b : a;
}

std::vector<Real> zeros(std::int64_t count, int bits) {
  return std::vector<Real>(static_cast<std::size_t>(count), Real(bits));
}

}  // namespace attn::exact
