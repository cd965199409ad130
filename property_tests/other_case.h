// As bound_case.h, of operations whose bound is not that of one softmax: differential attention and
// the indexer.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "property_tests/bound_case.h"
#include "property_tests/operation_answer.h"

namespace attn::property_tests {

struct OtherCase {
  std::string term;
  std::function<void(Arithmetic&)> contract;
  std::function<DrawnOperation(int)> problem;
  // The bound without the term: from another contract, from changed sums, or changed itself.
  std::function<void(Arithmetic&)> dropped_arithmetic = {};
  std::function<void(Tensors&)> dropped_sums = {};
  std::function<void(std::vector<double>& bounds)> dropped = {};
  double least = 0.5;
  int problems = 1;
  std::function<DrawnOperation(int)> read_as = {};  // as BoundCase::read_as
};

// Of `out` or `logits`, whose only row it is.
BoundRatios ratios_of(const OtherCase& other_case);

std::ostream& operator<<(std::ostream& stream, const OtherCase& other_case);

}  // namespace attn::property_tests
