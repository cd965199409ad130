// A simulated kernel: tiled attention that rounds exactly where a precision contract says, and
// errs as far as it allows. Bounds are tested against it, faults are planted in it, and it is the
// naive kernel of a precision that others are measured against.
//
// What the contract leaves open is in ModelOptions. Whatever they are, every rounding and injected
// error is counted by a term of the bound (docs/numerics.md): an error beyond the bound is a hole
// in the bound. The counts are argued where the operations are: model_sum.h, model_scalars.cc,
// model_keys.cc and model_merge.cc.
#pragma once

#include <cstdint>
#include <span>

#include "attn/arithmetic.h"
#include "property_tests/model_hooks.h"
#include "property_tests/model_options.h"
#include "property_tests/model_row.h"
#include "property_tests/model_sum.h"

namespace attn::property_tests {

class SoftwareModel {
 public:
  // `arithmetic` without stored types (with_stored_type); `hooks` outlive the model, null = no
  // fault.
  SoftwareModel(const Arithmetic& arithmetic, const ModelOptions& options,
                const ModelHooks* hooks = nullptr);

  // `out` [head_size_v, or out_size of a row that has a projection]; the log-sum-exp. Rounded as
  // the contract stores answers, unless `stored` is false. Not for scores of NaN or +inf: those
  // rows are NaN.
  double answer(const ModelRow& row, std::span<double> out, bool stored = true) const;

  const Arithmetic& arithmetic() const { return arithmetic_; }
  const ModelOptions& options() const { return options_; }
  const ModelHooks& hooks() const { return *hooks_; }
  const SumRules& dot_rules() const { return dot_; }
  // Of the projections of expanded latent attention.
  const SumRules& project_rules() const { return project_; }
  double projected(double x) const { return project_round_(x); }

 private:
  friend class ModelRowSolver;

  Arithmetic arithmetic_;
  ModelOptions options_;
  const ModelHooks* hooks_;
  SumRules dot_, sum_, pv_, project_;
  NumberRounder logit_, p_, part_, merge_lse_, project_round_, out_, lse_;
};

}  // namespace attn::property_tests
