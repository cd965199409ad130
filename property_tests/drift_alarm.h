// How far apart two float64 answers to one problem may be: an alarm for drift, from conditioning
// sums (attn/conditioning.h), of which pass or fail of a backend does not depend.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "attn/problem.h"
#include "property_tests/operation_answer.h"

namespace attn::property_tests {

// With u = 2^-53, c = 32 and one more for each further part of an exec, and REFERENCE's sums:
//
//   out     c u ((1 + b |m|) A + K + M)           b = 1 where a bias is added to scores and where
//                                                 log-sum-exps of base 2 are converted, else 0
//   lse     c u (1 + |m| + |L| + pa + pd + sd)    pa, pd over mass and no sd without the sink
//   logits  c u cond_ix
//
// out of `differential`: the two sides' alarms through the difference, the root mean square and the
// weights. Each answer may be off by its own rounding to F64 besides. Infinities and NaN must match
// in place; caches by their codes; out_codes must be those of quotients within the alarm of out.
class DriftAlarm {
 public:
  DriftAlarm(const Operation& operation, const Tensors& sums);

  // Empty, or the first element of the tensors that both answers have where they are more than
  // `times` the alarm apart. Of a shape other than the problem's: "shape".
  std::string difference(const Tensors& a, const Tensors& b, double times = 1.0) const;

  // The conditioning sums themselves: not below the exact ones (mass: not above), nor by more than
  // 2^-18 of them away, but for the drift of distances between scores.
  std::string sums_difference(const Tensors& sums, const Tensors& exact) const;

  // What `name` may be off at a place, in C order.
  double allowed(std::string_view name, std::int64_t flat) const;

 private:
  struct Rows;  // of one softmax
  void add_states(const Rows& rows, const std::string& out, bool lse);
  void add_differential(const DifferentialOp& op, const Tensors& sums);
  std::string code_difference(const Tensors& a, const Tensors& b, double times) const;
  std::string row_difference(const HostTensor& row, const HostTensor& exact) const;

  std::string operation_;
  double output_scale_ = 0.0;
  std::map<std::string, std::vector<double>, std::less<>> allowed_;
  std::vector<double> drift_of_distances_;  // as cond_puv
  std::vector<double> drift_of_rows_;       // of each row: a score's
};

// The largest part of an alarm that any comparison of this process needed, and how many
// comparisons there were: one line for each operation and output.
std::string largest_drifts();

}  // namespace attn::property_tests
