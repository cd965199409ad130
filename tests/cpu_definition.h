// The operation `attention` straight from its definition, for the tests of the CPU backend: a key
// by key predicate, scores and weights in double, one row after another.
#pragma once

#include <vector>

#include "attn/operation.h"

namespace attn::cpu_tests {

struct Answer {
  std::vector<double> out;     // [num_tokens, num_heads, head_size_v]
  std::vector<double> lse;     // [num_heads, num_tokens]
  double largest_value = 0.0;  // largest |v| any row sees
};

// For problems without infinities and NaN beyond -inf masks and sinks.
Answer define(const AttentionOp& op);

// Whether any row of the request, of any head, sees position k.
bool seen_by_any_row(const AttentionOp& op, std::int64_t request, std::int64_t k);

}  // namespace attn::cpu_tests
