// The error bound of differential attention: two softmaxes, their difference, the root mean square.
#pragma once

#include <span>

#include "attn/error_bound.h"
#include "attn/operation.h"
#include "judge/softmax_bound.h"

namespace attn::judge {

class DifferentialBound {
 public:
  // Keeps a pointer to `op`. `arithmetic` without stored types.
  DifferentialBound(const DifferentialOp& op, const Arithmetic& arithmetic);

  RowError row(const Expectation& expected, std::int64_t token, std::int64_t head,
               std::span<double> bounds) const;

 private:
  void through_norm(std::span<const double> y, std::span<double> bounds, RowError& error) const;
  void round_output(double z, double& bound) const;

  const DifferentialOp* op_;
  Arithmetic arithmetic_;
  SoftmaxBound side_;  // of either softmax, before the output is rounded
  double u_, omega_;
};

}  // namespace attn::judge
