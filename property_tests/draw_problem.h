// From a config to the values it stands for.
#pragma once

#include "property_tests/logical_problem.h"
#include "property_tests/problem_config.h"

namespace attn::property_tests {

// The problem of a normalised config. Every value is a function of seed, family and coordinates
// (attn/random.h): configs that differ in sizes, masks or memory share the values they have in
// common.
LogicalProblem draw_problem(const ProblemConfig& config);

}  // namespace attn::property_tests
