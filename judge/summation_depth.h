// How many roundings, as a relative error, a sum of products goes through.
#pragma once

#include <cstdint>

#include "attn/arithmetic.h"

namespace attn::judge {

// Of `n` products whose positions lie within `span` (masked ones between them add exact zeros). A
// `contiguous` sum has n = span and begins at a multiple of mma_k, a dot product.
double summation_depth(const Summation& sum, double n, double span, bool contiguous = false);

// Unit roundoff of the accumulator.
double accumulator_unit(const Summation& sum);

// g / (1 - g): what a product of factors (1 + e_i) with sum |e_i| <= g may be away from 1. Infinite
// from g = 1/2 on, where the bounds stop.
double gamma_factor(double g);

}  // namespace attn::judge
