// Scalar operations of one row under a contract: rounded to its `vector` type, exponentials and
// logarithms with the errors it allows.
#pragma once

#include <cmath>
#include <cstdint>

#include "attn/arithmetic.h"
#include "property_tests/model_options.h"
#include "property_tests/number_rounder.h"

namespace attn::property_tests {

class ModelScalars {
 public:
  // `salt` tells rows apart: a row's errors are a function of it and the options' seed.
  ModelScalars(const Arithmetic& arithmetic, const ModelOptions& options, std::uint64_t salt);

  double rounded(double x) const { return vector_(x); }
  const NumberRounder& vector() const { return vector_; }
  double unit() const { return unit_; }

  // x with `count` roundings that no operation of the model does: off by at most count * u |x|.
  double with_roundings(double x, int count) {
    return moved(x, std::fabs(x) * error(scalar_, count * unit_));
  }

  // e^(u - m) of a key. Every error is within what exp.rel, exp.abs, exp.arg_roundings and
  // exp.shift_roundings allow.
  double weight(double u, double m);
  // The same where it rescales, merges parts or brings in the sink. The shift is rounded only where
  // its roundings are those of the weights, so that they cancel however often sums are rescaled.
  double factor(double u, double m);
  // Of log-sum-exps: no shift is rounded.
  double merge_factor(double lse, double max);

  double tanh(double x);
  double bias(double b) { return moved(b, std::fabs(b) * error(scalar_, arithmetic_.bias_rel)); }
  // m + ln(sum).
  double log_sum_exp(double m, double sum);
  // accumulator / sum, by as many of normalize_roundings as there are.
  double quotient(double accumulator, double sum);

 private:
  double error(Injection injection, double size);  // at most `size`, which may be negative: 0
  static double moved(double x, double error);     // x + error, not further from x than that
  double difference(double u, double m) {
    return arithmetic_.exp_arg_roundings > 0 ? rounded(u - m) : u - m;
  }
  double exponential(ExponentForm form, double u, double m, Injection injection, bool shift);
  double exponential_of(double argument, bool base_2, Injection injection);

  const Arithmetic& arithmetic_;
  const ModelOptions& options_;
  std::uint64_t state_;
  NumberRounder vector_;
  double unit_;
  double log2_e_;  // as the kernel holds it
  bool is_f64_;
  Injection weight_, rescale_, scalar_;
};

}  // namespace attn::property_tests
