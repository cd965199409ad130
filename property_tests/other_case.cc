#include "property_tests/other_case.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>

#include "attn/error_bound.h"
#include "attn/problem.h"
#include "attn/reference.h"
#include "core/special_values.h"
#include "property_tests/model_answer.h"

namespace attn::property_tests {
namespace {

std::vector<double> bounds_of(const Operation& operation, const Arithmetic& arithmetic,
                              const Tensors& tensors) {
  const auto view = [&](const char* name) {
    const auto found = tensors.find(name);
    return found == tensors.end() ? TensorView{} : found->second.view();
  };
  const Expectation expected = {view("out"), view("lse"), view("logits"), conditioning_sums(view)};
  const AttentionProblem problem(operation);
  const ErrorBound bound(problem, arithmetic);
  if (problem.kind() == OpKind::kIndexer) {
    std::vector<double> bounds(static_cast<std::size_t>(expected.logits.shape[1]));
    const RowError error = bound.logits(expected, 0, bounds);
    return error.vacuous.empty() ? bounds : std::vector<double>(bounds.size(), kInf);
  }
  std::vector<double> bounds(static_cast<std::size_t>(expected.out.shape[2]));
  bound.row(expected, 0, 0, bounds);
  return bounds;
}

double ratio_of(const Tensors& expected, const Tensors& actual, const std::vector<double>& bounds,
                const std::vector<double>& of_reference) {
  const char* name = expected.contains("logits") ? "logits" : "out";
  const HostTensor& right = expected.find(name)->second;
  const HostTensor& answered = actual.find(name)->second;
  double largest = 0.0;
  for (std::size_t j = 0; j < bounds.size(); ++j) {
    const auto at = static_cast<std::int64_t>(j);
    const double error =
        std::fabs(decode(DType::kF64, answered.code(at)) - decode(DType::kF64, right.code(at)));
    if (!(bounds[j] < kInf)) return kInf;
    if (error > 0.0) {
      largest = std::max(largest, error / (bounds[j] * (1.0 + 0x1p-20) + of_reference[j]));
    }
  }
  return largest;
}

}  // namespace

BoundRatios ratios_of(const OtherCase& of) {
  const auto reference = make_reference_backend();
  Arithmetic arithmetic = exact_arithmetic();
  of.contract(arithmetic);
  Arithmetic other = arithmetic;
  if (of.dropped_arithmetic) of.dropped_arithmetic(other);
  BoundRatios ratios;
  for (int i = 0; i < of.problems; ++i) {
    const DrawnOperation drawn = of.problem(i);
    const DrawnOperation read = of.read_as ? of.read_as(i) : of.problem(i);
    const Tensors expected = answer_operation(*reference, drawn.operation, true);
    const Tensors actual =
        model_answer(read.operation, arithmetic, plain_model_options(arithmetic, DType::kF64));
    Tensors changed = expected;
    if (of.dropped_sums) of.dropped_sums(changed);
    const std::vector<double> of_reference =
        bounds_of(drawn.operation, with_stored_type(resolve({"reference"}), DType::kF64), expected);
    std::vector<double> bounds = bounds_of(drawn.operation, arithmetic, expected);
    ratios.full = std::max(ratios.full, ratio_of(expected, actual, bounds, of_reference));
    bounds = bounds_of(drawn.operation, other, changed);
    if (of.dropped) of.dropped(bounds);
    ratios.without_term =
        std::max(ratios.without_term, ratio_of(expected, actual, bounds, of_reference));
  }
  return ratios;
}

std::ostream& operator<<(std::ostream& stream, const OtherCase& of) { return stream << of.term; }

}  // namespace attn::property_tests
