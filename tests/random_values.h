// Random values that float32 holds.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/random.h"

namespace attn {

inline std::vector<double> bells(std::uint64_t seed, std::int64_t count, RandomTensor tensor) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const Words words = random_words(seed, static_cast<std::uint64_t>(i), tensor, 2);
    values.push_back(static_cast<float>(bell(words)));
  }
  return values;
}

}  // namespace attn
