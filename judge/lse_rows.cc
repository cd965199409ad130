#include "judge/lse_rows.h"

#include <array>
#include <cmath>

#include "attn/lse_form.h"

namespace attn::judge {
namespace {

constexpr double kUlp = 0x1p-52;  // of the translation, which is done in double

struct Sinks {
  TensorView values;
  bool counted = true;
};

Sinks sinks_of(const AttentionProblem& problem) {
  if (const AttentionOp* op = problem.attention()) return {op->sinks, op->lse_includes_sink};
  if (const auto* op = std::get_if<MlaSparseOp>(&problem.operation())) {
    return {op->sinks, op->lse_includes_sink};
  }
  return {};
}

}  // namespace

LseRows::LseRows(const AttentionProblem& problem, const Arithmetic& arithmetic,
                 const TensorView& expected, const TensorView& actual, const LseForm& form)
    : expected_(expected),
      stored_(actual.dtype),
      comparison_("lse", largest_finite(answer_format(actual.dtype))) {
  const Sinks sinks = sinks_of(problem);
  actual_ = reference_lse(actual, form, sinks.values, sinks.counted);
  const double unit = arithmetic.lse.unit();
  const double scalar = unit_roundoff(arithmetic.vector);
  if (form.base == LseBase::k2) {
    form_relative_ += 2.0 * kUlp;
    // The sink alone, times log2 e: the constant, the product, the storage.
    empty_relative_ = 2.0 * scalar + unit + 2.0 * kUlp;
  }
  if (!form.includes_sink && sinks.values.present() && sinks.counted) {
    // The kernel's error is relative to the keys' own log-sum-exp L_k, which may be large where L
    // is not; it counts with the keys' share, and share |L_k| <= |L| + 1/e.
    form_absolute_ += 0.5 * (unit + arithmetic.log_roundings * scalar) + 4.0 * kUlp;
    form_relative_ += 4.0 * kUlp;
  }
}

double LseRows::allowed_of_form(double expected, bool empty) const {
  if (!std::isfinite(expected)) return 0.0;
  const double size = std::fabs(expected);
  return empty ? empty_relative_ * size : form_relative_ * size + form_absolute_;
}

void LseRows::add(std::int64_t token, std::int64_t head, double allowed, bool empty) {
  const double e = expected(token, head);
  double a = actual_.value(head, token);
  if (empty) {
    // The sink itself, as the stored type has it.
    if (a == decode(stored_, encode(stored_, e, Overflow::kInfinity))) a = e;
    allowed = 0.0;
  }
  const std::array<double, 1> all_allowed{allowed + allowed_of_form(e, empty)};
  const std::array<std::int64_t, 1> at{head};
  ComparedRow row;
  row.at = at;
  row.first = token;
  row.expected = {&e, 1};
  row.actual = {&a, 1};
  row.allowed = all_allowed;
  row.gate = empty ? Gate::kEmptyRows : Gate::kBound;
  comparison_.add(row);
}

}  // namespace attn::judge
