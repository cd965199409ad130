// How far apart two correct answers may be because of rounding: derived from the problem, never
// measured.
#pragma once

#include "property_tests/answer.h"
#include "property_tests/logical_problem.h"

namespace attn::property_tests {

// The largest |value| of the problem, decoded.
double largest_value(const LogicalProblem& problem);

// What an answer in `dtype` (F64: unit roundoff 2^-53, F32: 2^-24) may be away from the exact one.
// First order, for finite scores, by the terms that rounding.cc lists.
Closeness rounding_bound(const LogicalProblem& problem, DType dtype);

// Twice that: for two answers to problems that have the same exact answer.
Closeness twice_rounding(const LogicalProblem& problem, DType dtype);

}  // namespace attn::property_tests
