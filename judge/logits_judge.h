// Judges the logits of an indexer, one token after the other.
#pragma once

#include <vector>

#include "judge/answer_pairs.h"
#include "judge/figures.h"
#include "judge/row_bounds.h"
#include "judge/row_comparison.h"

namespace attn::judge {

class LogitsJudge {
 public:
  LogitsJudge(const BoundSources& bounds, const TensorPair& logits);  // keeps references

  void run();
  void write_to(Judgement& judgement, Gates& gates) const;
  bool expects_a_constant() const { return figures_.expects_a_constant(); }
  bool expects_zero() const { return figures_.expects_zero(); }
  bool zeros_pass() const { return rows_.zeros_pass(); }

 private:
  void add_row(std::int64_t token);

  const BoundSources& bounds_;
  const TensorPair& logits_;
  RowComparison rows_;
  Figures figures_;
  std::int64_t finite_rows_ = 0, vacuous_rows_ = 0;
  std::vector<double> expected_, actual_, own_, allowed_;  // [num_keys]
};

}  // namespace attn::judge
