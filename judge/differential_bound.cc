#include "judge/differential_bound.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/special_values.h"
#include "judge/bound_terms.h"
#include "judge/operand_error.h"
#include "judge/row_values.h"
#include "judge/state_bound.h"
#include "judge/summation_depth.h"

namespace attn::judge {
namespace {

Arithmetic without_output_rounding(Arithmetic arithmetic) {
  arithmetic.out = {};
  arithmetic.lse = {};
  return arithmetic;
}

// The slice at `side` of a tensor [2, ...].
TensorView side_of(const TensorView& both, std::int64_t side) {
  TensorView view = both;
  view.data = both.at(side);
  view.rank = both.rank - 1;
  for (int axis = 0; axis < view.rank; ++axis) {
    view.shape[axis] = both.shape[axis + 1];
    view.stride_bytes[axis] = both.stride_bytes[axis + 1];
  }
  return view;
}

Expectation side_of(const Expectation& expected, std::int64_t side) {
  const ConditioningSums& sums = expected.sums;
  Expectation one;
  one.out = side_of(sums.o, side);
  one.sums = {side_of(sums.pv, side),
              side_of(sums.pav, side),
              side_of(sums.puv, side),
              side_of(sums.v, side),
              side_of(sums.row, side),
              {},
              {}};
  return one;
}

std::vector<double> values_of_row(const TensorView& view, std::int64_t token, std::int64_t head) {
  std::vector<double> values(static_cast<std::size_t>(view.shape[2]));
  read_row(view, 0, view.shape[2], values.data(), token, head);
  return values;
}

double root_mean_square(std::span<const double> values, double eps) {
  double sum = 0.0;
  for (const double x : values) sum += x * x;
  return std::sqrt(sum / static_cast<double>(values.size()) + eps);
}

}  // namespace

DifferentialBound::DifferentialBound(const DifferentialOp& op, const Arithmetic& arithmetic)
    : op_(&op),
      arithmetic_(arithmetic),
      side_(without_output_rounding(arithmetic), bound_terms(op.attention)),
      u_(unit_roundoff(arithmetic.vector)),
      omega_(underflow(arithmetic, arithmetic.vector)) {}

RowError DifferentialBound::row(const Expectation& expected, std::int64_t token, std::int64_t head,
                                std::span<double> bounds) const {
  const Expectation first = side_of(expected, 0);
  const Expectation second = side_of(expected, 1);
  std::vector<double> bounds_second(bounds.size());
  RowError error = state_row(side_, first, token, head, bounds);
  const RowError other = state_row(side_, second, token, head, bounds_second);
  if (error.vacuous.empty()) error.vacuous = other.vacuous;
  error.out_of_range = error.out_of_range || other.out_of_range;
  error.empty = error.empty && other.empty;
  error.hull = kInf;
  error.lse = 0.0;
  if (error.empty) return error;
  std::vector<double> y = values_of_row(first.out, token, head);
  const std::vector<double> y1 = values_of_row(second.out, token, head);
  const double lambda = std::fabs(op_->lambda);
  for (std::size_t j = 0; j < bounds.size(); ++j) {
    // lambda as the kernel holds it, the product, the difference.
    bounds[j] = (bounds[j] + lambda * bounds_second[j]) * (1.0 + 4.0 * u_) +
                4.0 * u_ * (std::fabs(y[j]) + lambda * std::fabs(y1[j])) + 3.0 * omega_;
    y[j] -= op_->lambda * y1[j];
  }
  if (error.vacuous.empty()) through_norm(y, bounds, error);
  if (!error.vacuous.empty()) std::fill(bounds.begin(), bounds.end(), kInf);
  return error;
}

// The root mean square moves by at most that of the errors (it is 1-Lipschitz).
void DifferentialBound::through_norm(std::span<const double> y, std::span<double> bounds,
                                     RowError& error) const {
  const double factor = std::fabs(1.0 - op_->lambda_init);
  if (!op_->norm_weight.present()) {
    for (std::size_t j = 0; j < y.size(); ++j) {
      const double z = factor * y[j];
      bounds[j] = factor * bounds[j] * (1.0 + 4.0 * u_) + 2.0 * u_ * std::fabs(z);
      round_output(z, bounds[j]);
    }
    return;
  }
  const double root = root_mean_square(y, op_->eps);
  // Squares may underflow.
  const double moved = root_mean_square(bounds, 0.0) + std::sqrt(4.0 * omega_);
  if (root > std::sqrt(largest_finite(arithmetic_.vector) / static_cast<double>(4 * y.size()))) {
    error.vacuous = "a sum of squares may overflow";
    error.out_of_range = true;
    return;
  }
  if (!(moved < root / 2.0)) {
    error.vacuous = "the root mean square may be off by half of itself";
    return;
  }
  const double roundings = gamma_factor((static_cast<double>(y.size()) + 8.0) * u_);
  for (std::size_t j = 0; j < y.size(); ++j) {
    const double weight =
        factor * std::fabs(value_at(op_->norm_weight, static_cast<std::int64_t>(j)));
    const double z = weight * y[j] / root;
    bounds[j] = weight * (bounds[j] + 4.0 * omega_ + std::fabs(y[j]) * moved / root) /
                    (root - moved) * (1.0 + roundings) +
                roundings * std::fabs(z);
    round_output(z, bounds[j]);
  }
}

void DifferentialBound::round_output(double z, double& bound) const {
  const double u = arithmetic_.out.unit();
  bound = (bound + 4.0 * omega_) * (1.0 + u) + u * std::fabs(z) + arithmetic_.out.quantum();
}

}  // namespace attn::judge
