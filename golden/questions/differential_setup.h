// A question of the operation `differential`: attention, and what becomes of its pairs of heads.
#pragma once

#include <string>

#include "golden/questions/question.h"
#include "golden/questions/setup.h"

namespace attn::questions {

// Without norm; lambda 3/4, lambda_init 1/4.
Question differential_question(std::string id, std::string name, std::string scenario,
                               const AttentionSetup& setup);

// RMS norm with drawn weights over the pair of values; lambda 1/2, lambda_init 0.8, eps 1e-5.
void add_norm(Question& question, const AttentionSetup& setup);

}  // namespace attn::questions
