#include <fmt/core.h>

#include <cmath>

#include "attn/error.h"
#include "attn/mask.h"

namespace attn {

std::vector<float> alibi_slopes(std::int64_t num_heads) {
  if (num_heads < 1) throw Error(fmt::format("num_heads is {}, must be at least 1", num_heads));
  std::int64_t n2 = 1;
  while (2 * n2 <= num_heads) n2 *= 2;
  std::vector<float> slopes;
  for (std::int64_t h = 0; h < num_heads; ++h) {
    const double exponent =
        h < n2 ? -8.0 * static_cast<double>(h + 1) / static_cast<double>(n2)
               : -4.0 * static_cast<double>(2 * (h - n2) + 1) / static_cast<double>(n2);
    slopes.push_back(static_cast<float>(std::exp2(exponent)));
  }
  return slopes;
}

}  // namespace attn
