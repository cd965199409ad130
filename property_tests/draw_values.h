// Queries, keys, values and their scales, element by element.
#pragma once

#include "property_tests/logical_problem.h"
#include "property_tests/problem_config.h"

namespace attn::property_tests {

// Query, key and value of request `r`, in the config's types, with the scales that lie in the
// cache.
LogicalRequest draw_request(const ProblemConfig& config, std::int64_t r, std::int64_t query_len,
                            std::int64_t seq_len);

// The scale tensors of the whole problem: k, v, global, q and output scales.
void draw_scales(const ProblemConfig& config, LogicalProblem& problem);

}  // namespace attn::property_tests
