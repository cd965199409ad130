#include "golden/exact/elements.h"

namespace attn::exact {

Real sum_of(const std::vector<Real>& x, int bits) {
  Real sum(bits);
  for (const Real& each : x) sum += each;
  return sum;
}

Real largest_of(const std::vector<Real>& x, int bits) {
  Real largest(bits);
  for (const Real& each : x) largest = max(largest, each);
  return largest;
}

Real dot(const std::vector<Real>& a, const std::vector<Real>& b, int bits) {
  std::vector<Real> products = a;
  std::vector<mpfr_ptr> addresses;
  addresses.reserve(products.size());
  for (std::size_t i = 0; i < products.size(); ++i) {
    products[i] *= b[i];
    addresses.push_back(products[i].get());
  }
  Real sum(bits);
  mpfr_sum(sum.get(), addresses.data(), addresses.size(), MPFR_RNDN);
  return sum;
}

}  // namespace attn::exact
