// How far answers of the software model are from others.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "property_tests/operation_answer.h"

namespace attn::property_tests {

// Largest |a - b| over 1 + |b|; infinite where one is infinite or NaN and the other is not.
inline double distance(const HostTensor& a, const HostTensor& b) {
  double largest = 0.0;
  for (std::int64_t i = 0; i < b.num_units(); ++i) {
    const double x = decode(a.dtype(), a.code(i));
    const double y = decode(b.dtype(), b.code(i));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double away = std::fabs(x - y) / (1.0 + std::fabs(y));
    largest = std::max(largest, away >= 0.0 ? away : std::numeric_limits<double>::infinity());
  }
  return largest;
}

inline double distance(const Tensors& a, const Tensors& exact) {
  double largest = 0.0;
  for (const auto& [name, tensor] : a) {
    largest = std::max(largest, distance(tensor, exact.find(name)->second));
  }
  return largest;
}

}  // namespace attn::property_tests
