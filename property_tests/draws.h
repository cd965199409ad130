// Numbers drawn one after the other from one seed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/random.h"

namespace attn::property_tests {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t word() { return derived_seed(seed_, count_++); }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(word() >> 1) % n; }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  bool yes() { return !one_in(2); }
  double even() { return static_cast<double>(word() >> 11) * 0x1p-52 - 1.0; }  // [-1, 1)
  template <class T, std::size_t n>
  T one_of(const T (&values)[n]) {
    return values[below(static_cast<std::int64_t>(n))];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

}  // namespace attn::property_tests
