#include "property_tests/software_model.h"

#include "property_tests/model_row_solver.h"

namespace attn::property_tests {
namespace {

const ModelHooks kNoFault;

// A contract that says nothing of projections makes them as it makes scores.
Arithmetic::Projection projection_of(const Arithmetic& arithmetic) {
  return arithmetic.project.value_or(
      Arithmetic::Projection{arithmetic.dot, Rounding{arithmetic.vector}});
}

}  // namespace

SoftwareModel::SoftwareModel(const Arithmetic& arithmetic, const ModelOptions& options,
                             const ModelHooks* hooks)
    : arithmetic_(arithmetic),
      options_(options),
      hooks_(hooks != nullptr ? hooks : &kNoFault),
      dot_(arithmetic.dot, arithmetic.flush, options.dot_order, 0),
      sum_(arithmetic.sum, arithmetic.flush, options.key_order, options.grid_shift),
      pv_(arithmetic.pv, arithmetic.flush, options.key_order, options.grid_shift),
      project_(projection_of(arithmetic).sum, arithmetic.flush, options.dot_order, 0),
      logit_(arithmetic.logit),
      p_(arithmetic.p),
      part_(arithmetic.merge_part),
      merge_lse_(Rounding{arithmetic.merge_lse}),
      project_round_(projection_of(arithmetic).round),
      out_(arithmetic.out),
      lse_(arithmetic.lse) {}

double SoftwareModel::answer(const ModelRow& row, std::span<double> out, bool stored) const {
  if (hooks_ == &kNoFault) return ModelRowSolver(*this, row).solve(out, stored);
  ModelRow changed = row;
  hooks_->change_row(changed);
  return ModelRowSolver(*this, changed).solve(out, stored);
}

}  // namespace attn::property_tests
