// The right answer to a case, as the judge takes it: outputs that the case asks for, and the
// conditioning sums.
#pragma once

#include <string>

#include "attn/case_file.h"
#include "attn/judgement.h"
#include "cli/answer.h"

namespace attn::cli {

// Why there is nothing to judge an answer by: REFERENCE does not support the problem, or the case
// asks for no output. Empty when there is.
std::string why_unjudged(const CaseFile& file, const AttentionProblem& problem);

// Recomputed by REFERENCE. Only when why_unjudged() is empty.
class RecomputedAnswer {
 public:
  RecomputedAnswer(const CaseFile& file, const AttentionProblem& problem);

  const ExpectedAnswer& expected() const { return expected_; }

 private:
  Answer memory_;
  ExpectedAnswer expected_;
};

TensorOf tensors_of(const ExpectedAnswer& expected);

// As a pack stores it, correctly rounded; views into the file. Error when a tensor is missing.
ExpectedAnswer stored_answer(const CaseFile& file, const AttentionProblem& problem);

}  // namespace attn::cli
