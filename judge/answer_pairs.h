// Tensors of an answer next to the expected ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attn/judgement.h"

namespace attn::judge {

struct TensorPair {
  std::string name;
  TensorView expected, actual;
};

// Outputs of the operation, in the order of `expected`; checked as judge_answer() says.
std::vector<TensorPair> answer_pairs(const AttentionProblem& problem,
                                     const ExpectedAnswer& expected, const ActualAnswer& actual);

// Null when there is none of that name.
const TensorPair* find(const std::vector<TensorPair>& pairs, std::string_view name);

}  // namespace attn::judge
