// Attention written down once more, from the definition and for no other purpose: sets of keys and
// long double sums over a LogicalProblem, no memory layout, no tiles. It shares nothing with any
// backend.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>

#include "property_tests/answer.h"
#include "property_tests/logical_problem.h"

namespace attn::property_tests {

using KeySet = std::set<std::int64_t>;

// The keys that row `row` of request `r` sees for query head `head`: masks and biases of -inf taken
// away. (A score of -inf from the data itself is not considered.)
KeySet visible_keys(const LogicalProblem& problem, std::int64_t r, std::int64_t head,
                    std::int64_t row);

// visible_keys of every row of a problem, worked out once.
class VisibleKeys {
 public:
  explicit VisibleKeys(const LogicalProblem& problem);

  const KeySet& of(std::int64_t r, std::int64_t head, std::int64_t row) const {
    return keys_.at({r, head, row});
  }

 private:
  std::map<std::array<std::int64_t, 3>, KeySet> keys_;
};

// The answer: out, lse in double, rounded once from long double. No output codes.
Answer answer_by_definition(const LogicalProblem& problem);

}  // namespace attn::property_tests
