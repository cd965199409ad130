#include "property_tests/bound_case.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>

#include "attn/problem.h"
#include "attn/reference.h"
#include "core/special_values.h"
#include "judge/bound_terms.h"
#include "judge/state_bound.h"
#include "property_tests/model_answer.h"
#include "property_tests/operation_answer.h"

namespace attn::property_tests {
namespace {

const Backend& reference() {
  static const std::unique_ptr<Backend> kReference = make_reference_backend();
  return *kReference;
}

// Hooks of the model from functions, for a row with the maximum `max`.
class FunctionHooks final : public ModelHooks {
 public:
  FunctionHooks(const KernelHooks& hooks, double max) : hooks_(hooks), max_(max) {}

  void change_row(ModelRow& row) const override {
    if (hooks_.change_row) hooks_.change_row(row);
  }
  double sum_weight(const ModelPlace&, std::int64_t position, double w) const override {
    return hooks_.weight ? hooks_.weight(position, w) : w;
  }
  double value_weight(const ModelPlace&, std::int64_t position, double w) const override {
    return hooks_.weight ? hooks_.weight(position, w) : w;
  }
  double row_sum(const ModelPlace&, double sum) const override {
    sum_ = sum;
    return sum;
  }
  double out(const ModelPlace&, std::int64_t, double value) const override {
    return hooks_.out ? hooks_.out(value) : value;
  }
  double lse(const ModelPlace&, double value) const override {
    return hooks_.lse ? hooks_.lse(max_, sum_) : value;
  }

 private:
  const KernelHooks& hooks_;
  double max_;
  mutable double sum_ = 0.0;
};

judge::SoftmaxTerms terms_of(const Operation& operation) {
  if (const auto* op = std::get_if<AttentionOp>(&operation)) return judge::bound_terms(*op);
  if (const auto* op = std::get_if<MlaOp>(&operation)) return judge::bound_terms(*op);
  return judge::bound_terms(std::get<MergeStatesOp>(operation));
}

Arithmetic of_operation(const Arithmetic& arithmetic, const Operation& operation) {
  const auto* merge = std::get_if<MergeStatesOp>(&operation);
  return merge != nullptr ? judge::merging_arithmetic(arithmetic, *merge) : arithmetic;
}

Expectation expectation_of(const Tensors& tensors) {
  const auto view = [&](const char* name) {
    const auto found = tensors.find(name);
    return found == tensors.end() ? TensorView{} : found->second.view();
  };
  Expectation expected;
  expected.out = view("out");
  expected.lse = view("lse");
  expected.sums = {view("cond_pv"),
                   view("cond_pav"),
                   view("cond_puv"),
                   view("cond_v"),
                   view("cond_row"),
                   {},
                   {}};
  return expected;
}

// Of the only row: an element of out each, or of lse.
std::vector<double> bounds_of(const BoundCase& of, const Operation& operation,
                              const Arithmetic& contract, const Tensors& expected,
                              const DroppedTerm& dropped) {
  Arithmetic arithmetic = of_operation(contract, operation);
  if (dropped.arithmetic) dropped.arithmetic(arithmetic);
  judge::SoftmaxTerms terms = terms_of(operation);
  if (dropped.terms) dropped.terms(terms);
  const Expectation right = expectation_of(expected);
  judge::RowSums sums = judge::row_sums(right.sums.row, 0, 0);
  if (dropped.sums) dropped.sums(sums);
  judge::RowBound bound = judge::SoftmaxBound(arithmetic, terms).row(sums);
  if (dropped.bound) dropped.bound(bound);
  std::vector<double> bounds(static_cast<std::size_t>(right.out.shape[2]));
  const RowError error = judge::element_bounds(bound, right.sums, right.out, 0, 0, bounds);
  if (of.answer == BoundedAnswer::kLse) return {error.lse};
  return bounds;
}

double ratio_of(const BoundCase& of, const Tensors& expected, const Tensors& actual,
                const std::vector<double>& bounds, const std::vector<double>& of_reference) {
  const char* name = of.answer == BoundedAnswer::kLse ? "lse" : "out";
  const HostTensor& right = expected.find(name)->second;
  const HostTensor& answered = actual.find(name)->second;
  double largest = 0.0;
  for (std::size_t j = 0; j < bounds.size(); ++j) {
    const auto at = static_cast<std::int64_t>(j);
    const double error =
        std::fabs(decode(DType::kF64, answered.code(at)) - decode(DType::kF64, right.code(at)));
    if (!(bounds[j] < kInf) || !std::isfinite(error)) return kInf;
    const double allowed = bounds[j] * (1.0 + 0x1p-20) + of_reference[j];
    largest = std::max(largest, error == 0.0 ? 0.0 : error / allowed);
  }
  return largest;
}

}  // namespace

double exact_lse(double max, double sum) { return max + std::log(sum); }

Arithmetic exact_arithmetic() {
  return resolve({"fp32", R"({
    "vector": "exact", "dot": {"type": "exact"}, "sum": {"type": "exact"}, "pv": {"type": "exact"},
    "scale_roundings": 0, "cap": {"rel": "0x0p+0"}, "bias_rel": "0x0p+0", "tile": 0,
    "exp": {"rel": "0x0p+0", "abs": "0x0p+0", "arg_roundings": 0, "shift_roundings": 0},
    "merge": {"lse": "exact"}, "normalize_roundings": 0,
    "log": {"abs": "0x0p+0", "roundings": 0}, "out": "exact", "lse": "exact"})"});
}

void all_up(ModelOptions& options, int) {
  options.weight_error = Injection::kUp;
  options.rescale_error = Injection::kUp;
  options.scalar_error = Injection::kUp;
}

BoundRatios ratios_of(const BoundCase& of) {
  BoundRatios ratios;
  Arithmetic arithmetic = exact_arithmetic();
  of.contract(arithmetic);
  const Arithmetic reference_arithmetic = with_stored_type(resolve({"reference"}), DType::kF64);
  for (int i = 0; i < of.problems; ++i) {
    const DrawnOperation drawn = of.problem(i);
    const Operation& operation = drawn.operation;
    const Tensors expected = answer_operation(reference(), operation, true);
    ModelOptions options = plain_model_options(arithmetic, DType::kF64);
    if (of.options) of.options(options, i);
    const judge::RowSums sums = judge::row_sums(expected.find("cond_row")->second.view(), 0, 0);
    const FunctionHooks hooks(of.hooks, sums[kRowMax]);
    const std::optional<DrawnOperation> read =
        of.read_as ? std::optional(of.read_as(i)) : std::nullopt;
    const Tensors actual =
        model_answer(read ? read->operation : operation, arithmetic, options, &hooks);
    const auto bounds = [&](const Arithmetic& contract, const DroppedTerm& dropped) {
      return bounds_of(of, operation, contract, expected, dropped);
    };
    const std::vector<double> of_reference = bounds(reference_arithmetic, {});
    ratios.full =
        std::max(ratios.full, ratio_of(of, expected, actual, bounds(arithmetic, {}), of_reference));
    ratios.without_term =
        std::max(ratios.without_term,
                 ratio_of(of, expected, actual, bounds(arithmetic, of.dropped), of_reference));
  }
  return ratios;
}

std::ostream& operator<<(std::ostream& stream, const BoundCase& of) { return stream << of.term; }

}  // namespace attn::property_tests
