// Decoded numbers of one token and head, with what bounds their rounding errors.
#pragma once

#include <utility>
#include <vector>

#include "golden/exact/real.h"

namespace attn::exact {

// `size` is the sum of the magnitudes of the terms a value was summed from; of a stored number its
// own magnitude.
struct Elements {
  std::vector<Real> value;
  std::vector<Real> size;

  void push(Real x) {
    size.push_back(abs(x));
    value.push_back(std::move(x));
  }
  void push(Real x, Real of_terms) {
    value.push_back(std::move(x));
    size.push_back(std::move(of_terms));
  }
};

Real sum_of(const std::vector<Real>& x, int bits);
Real largest_of(const std::vector<Real>& x, int bits);  // 0 of none; x >= 0
// The products' sum, rounded once: numbers that cancel leave no error of their own.
Real dot(const std::vector<Real>& a, const std::vector<Real>& b, int bits);

}  // namespace attn::exact
