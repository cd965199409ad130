// What an element of a random tensor holds, from its four words: in every operation beside
// attention (draw_values.h).
#pragma once

#include <cstdint>

#include "attn/random.h"
#include "core/special_values.h"
#include "property_tests/problem_config.h"

namespace attn::property_tests {

inline double random_element(Family family, const Words& words, DType dtype) {
  switch (family) {
    case Family::kUniform:
      return uniform(words, dtype);
    case Family::kExactLane:
      return small_integer(words);
    default:
      return bell(words);
  }
}

// One element in 64, by bits that no map of values looks at first.
inline bool is_special(const Words& words) { return (words[2] & 63) == 0; }

inline double special_value(const Words& words) {
  constexpr double kValues[] = {kInf, -kInf, kNaN, 0.0};
  return kValues[words[3] & 3];
}

}  // namespace attn::property_tests
