// A search for a hole in the error bound: hill climbing on |error| / bound over the numbers of a
// small problem and over what a contract leaves to the kernel.
#pragma once

#include <cstdint>
#include <string>

#include "attn/contract.h"

namespace attn::property_tests {

// The largest |error| / bound of an element, and the problem and the kernel that came to it.
struct ClimbResult {
  double largest_out = 0.0, largest_lse = 0.0;
  std::string where_out, where_lse;
};

// `steps` problems are evaluated; answers in float32, of contracts in float64 in float64. The
// search starts anew from a drawn problem when nothing has become better for a while. The same
// seed, the same result.
ClimbResult climb(const PrecisionContract& contract, std::uint64_t seed, int steps);

}  // namespace attn::property_tests
