// Log-sum-exps of an answer next to the expected ones, row by row.
#pragma once

#include <cstdint>

#include "attn/arithmetic.h"
#include "attn/host_tensor.h"
#include "attn/judgement.h"
#include "judge/row_comparison.h"

namespace attn::judge {

class LseRows {
 public:
  // `actual` in `form`, `expected` in LseForm{}. Translates once; keeps a view of `expected`.
  LseRows(const AttentionProblem& problem, const Arithmetic& arithmetic, const TensorView& expected,
          const TensorView& actual, const LseForm& form);

  double expected(std::int64_t token, std::int64_t head) const {
    return value_at(expected_, head, token);
  }

  // `allowed` is infinite where there is no bound; `empty` as RowError::empty.
  void add(std::int64_t token, std::int64_t head, double allowed, bool empty);
  void pass_over() { comparison_.pass_over(1); }

  const RowComparison& comparison() const { return comparison_; }

 private:
  double allowed_of_form(double expected, bool empty) const;

  TensorView expected_;
  DType stored_;
  HostTensor actual_;  // [num_heads, num_tokens], f64
  RowComparison comparison_;
  // What writing and reading another form than LseForm{} may add, relative and absolute.
  double form_relative_ = 0.0, form_absolute_ = 0.0;
  double empty_relative_ = 0.0;
};

}  // namespace attn::judge
