// Rows that every arithmetic computes exactly: what must be in `out`, bit for bit.
//
// Scores that are sums of products with a zero factor are zero however they are rounded; without
// biases and sink every weight is then e^0 = 1, the row sum the number of keys n, and the answer
// sum v / n. It is exact
//   - for n = 1: the value itself, when the types on its way hold it;
//   - for n = 2^k when all values of the problem are integers and the accumulator holds sum |v|.
// Left out are rows whose values are multiplied by a scale, projected, or merged through
// log-sum-exps (a logarithm is not exact). Scores other than 0 are left out even for n = 1: kernels
// that form fl(m c) and x c - fl(m c) in one instruction do not subtract a number from itself.
//
// A sink of +inf takes all the weight: out is 0.
#pragma once

#include <cstdint>
#include <span>

#include "attn/error_bound.h"
#include "attn/problem.h"

namespace attn::judge {

class ExactLane {
 public:
  // `arithmetic` without stored types; `out_type` is the type of the answer. Keeps views.
  ExactLane(const AttentionProblem& problem, const Arithmetic& arithmetic,
            const Expectation& expected, DType out_type);

  // Whether the row is exact; then `exact` [head_size_v] is it. `out` is the expected row.
  bool row(std::int64_t token, std::int64_t head, std::span<const double> out,
           std::span<double> exact) const;

 private:
  bool is_zero_row(std::int64_t token, std::int64_t head) const;
  bool is_exact(double expected, double visible, double sum_of_sizes, double& exact) const;

  TensorView sums_row_, sums_v_;
  DType out_type_;
  DType value_type_ = DType::kF32;
  bool eligible_ = false;  // by the operation and the arithmetic
  bool integer_values_ = false;
  double smallest_ = 0.0;      // values below it, but 0, may be flushed
  double largest_sum_ = 0.0;   // of integers that are added exactly
  double largest_keys_ = 0.0;  // 1 / n and n are exact up to it
};

}  // namespace attn::judge
