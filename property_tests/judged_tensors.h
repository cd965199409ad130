// Answers of random problems before the judge, and how near to their bounds they came.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "attn/judgement.h"
#include "property_tests/operation_answer.h"

namespace attn::property_tests {

// Judges every output of the operation that both have. `expected` holds its conditioning sums and
// was computed under `expected_contract`.
Judgement judge_tensors(const AttentionProblem& problem, const Tensors& expected,
                        const PrecisionContract& expected_contract, const Tensors& actual,
                        const PrecisionContract& contract);

// What many judgements under one contract came to.
struct BoundRecord {
  std::int64_t problems = 0;
  std::int64_t rows = 0;          // that see a key and have a finite answer
  std::int64_t vacuous_rows = 0;  // of these, without a bound
  double largest_out = 0.0;       // |error| / bound, of out and logits
  double largest_lse = 0.0;

  void add(const Judgement& judgement);
};

// By contract; one line each: "bf16_flash  1000 problems, ...".
using BoundRecords = std::map<std::string, BoundRecord, std::less<>>;
std::string to_string(const BoundRecords& records);

}  // namespace attn::property_tests
