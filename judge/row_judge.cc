#include "judge/row_judge.h"

#include <algorithm>
#include <cmath>

#include "attn/conditioning.h"
#include "core/special_values.h"
#include "judge/row_values.h"

namespace attn::judge {
namespace {

// Both ends of what is allowed saturate, too: far beyond the largest value only that is right.
void clamp_element(double largest, double& expected, double& allowed) {
  const double clamped = std::clamp(expected, -largest, largest);
  if (allowed < kInf && std::fabs(expected) + allowed > largest) {
    allowed = std::max(std::clamp(expected + allowed, -largest, largest) - clamped,
                       clamped - std::clamp(expected - allowed, -largest, largest));
  }
  expected = clamped;
}

}  // namespace

double output_scale(const AttentionProblem& problem) {
  const AttentionOp* op = problem.attention();
  return op != nullptr && op->output_scale.present() ? value_at(op->output_scale, 0) : 1.0;
}

RowJudge::RowJudge(const BoundSources& bounds, const AttentionProblem& problem,
                   const Expectation& expected, const Arithmetic& arithmetic,
                   const std::vector<TensorPair>& pairs, const LseForm& lse_form,
                   const JudgeOptions& options)
    : bounds_(bounds),
      expectation_(expected),
      out_(find(pairs, "out")),
      codes_(find(pairs, "out_codes")),
      options_(options),
      output_scale_(output_scale(problem)) {
  const TensorView& shape = expected.out;
  num_tokens_ = shape.shape[0];
  num_heads_ = shape.shape[1];
  const auto size = static_cast<std::size_t>(shape.shape[2]);
  for (std::vector<double>* row :
       {&expected_, &actual_, &own_, &allowed_, &exact_, &zeros_, &magnitudes_, &naive_}) {
    row->resize(size);
  }
  if (const TensorPair* lse = find(pairs, "lse")) {
    lse_rows_ =
        std::make_unique<LseRows>(problem, arithmetic, lse->expected, lse->actual, lse_form);
  }
  if (codes_ != nullptr) code_rows_ = std::make_unique<RowComparison>("out_codes", kInf);
  if (out_ == nullptr) return;
  const DType stored = out_->actual.dtype;
  // A contract may round to fewer values than the stored type has.
  const double largest =
      std::min(largest_finite(answer_format(stored)), largest_finite(arithmetic.out.type));
  out_rows_ = std::make_unique<RowComparison>("out", largest);
  lane_ = std::make_unique<ExactLane>(problem, arithmetic, expected, stored);
  const TensorView& pv = expected.sums.pv;
  figures_ =
      std::make_unique<Figures>(stored, pv.present() && pv.rank == 3, options.naive.present());
  if (options.strict && bounds.answer->has_probable())
    strict_rows_ = std::make_unique<RowComparison>("out", largest);
}

void RowJudge::run() {
  for (std::int64_t token = 0; token < num_tokens_; ++token) {
    for (std::int64_t head = 0; head < num_heads_; ++head) add_row(token, head);
  }
}

// What a source allows of every element beside the expectation's own error, which is in own_.
void RowJudge::allow(const RowBounds& source, Row& row, std::vector<double>& allowed) {
  row.error = source.row(row.token(), row.head(), allowed);
  double* to = allowed.data();
  const double* own = own_.data();
  for (std::size_t j = 0; j < allowed.size(); ++j) to[j] = to[j] * kBoundSlack + own[j];
}

void RowJudge::add_row(std::int64_t token, std::int64_t head) {
  Row row;
  row.at = {token, head};
  read_row(expectation_.out, 0, expectation_.out.shape[2], expected_.data(), token, head);
  const RowError own = bounds_.expectation->row(token, head, own_);
  allow(*bounds_.answer, row, allowed_);
  row.empty = row.error.empty;
  const bool certified = row.error.vacuous.empty() && own.vacuous.empty();
  row.out_of_range = row.error.out_of_range || own.out_of_range;
  if (out_ != nullptr) add_out(row);
  if (lse_rows_) add_lse(row, certified ? row.error.lse * kBoundSlack + own.lse : kInf);
  if (codes_ != nullptr) add_codes(row);
  count(row);
}

// The row at hand next to what is allowed of it: nothing, when it sees no key.
ComparedRow RowJudge::held(const Row& row, double hull) const {
  if (row.empty) return {row.at, 0, expected_, actual_, zeros_, kInf, Gate::kEmptyRows};
  return {row.at, 0, expected_, actual_, allowed_, hull, Gate::kBound};
}

void RowJudge::add_out(Row& row) {
  const std::int64_t size = out_->actual.shape[2];
  read_row(out_->actual, 0, size, actual_.data(), row.token(), row.head());
  ComparedRow compared = held(row, row.error.hull);
  if (!row.empty && lane_->row(row.token(), row.head(), expected_, exact_)) {
    compared.expected = exact_;
    compared.allowed = zeros_;
    compared.gate = Gate::kExact;
  }
  compare(*out_rows_, compared, row);
  if (strict_rows_ && compared.gate == Gate::kBound && row.bounded) add_strict(row);
  add_figures(row);
}

// A finite element that is not held to anything leaves its row without a bound.
void RowJudge::compare(RowComparison& rows, const ComparedRow& compared, Row& row) {
  if (row.out_of_range) {
    rows.pass_over(static_cast<std::int64_t>(compared.expected.size()));
    row.bounded = false;
    return;
  }
  rows.add(compared);
  for (std::size_t j = 0; j < compared.expected.size(); ++j) {
    row.bounded &= compared.allowed[j] < kInf || !std::isfinite(compared.expected[j]);
  }
}

void RowJudge::add_lse(Row& row, double allowed) {
  if (row.out_of_range || row.error.lse_may_vanish) {
    lse_rows_->pass_over();
    row.bounded = false;
    return;
  }
  lse_rows_->add(row.token(), row.head(), allowed, row.empty);
  if (!row.empty && std::isfinite(lse_rows_->expected(row.token(), row.head()))) {
    row.bounded &= allowed < kInf;
  }
}

void RowJudge::add_strict(const Row& row) {
  const RowError error = bounds_.answer->probable_row(row.token(), row.head(), allowed_);
  if (!error.vacuous.empty()) return;
  for (std::size_t j = 0; j < allowed_.size(); ++j) {
    allowed_[j] = allowed_[j] * kBoundSlack + own_[j];
  }
  ComparedRow compared = held(row, kInf);
  compared.gate = Gate::kStrict;
  strict_rows_->add(compared);
}

void RowJudge::add_codes(Row& row) {
  Row coded = row;
  allow(*bounds_.codes, coded, allowed_);
  const double largest = largest_finite(NumberFormat::kF8E4M3FN) * output_scale_;
  read_row(codes_->actual, 0, codes_->actual.shape[2], actual_.data(), row.token(), row.head());
  for (std::size_t j = 0; j < actual_.size(); ++j) {
    actual_[j] *= output_scale_;
    if (!std::isnan(expected_[j])) clamp_element(largest, expected_[j], allowed_[j]);
  }
  compare(*code_rows_, held(row, coded.error.hull), row);
}

void RowJudge::add_figures(const Row& row) {
  PolicyRow figures{expected_, actual_, {}, {}, 0.0};
  const std::int64_t size = out_->actual.shape[2];
  const ConditioningSums& sums = expectation_.sums;
  if (sums.pv.present() && sums.pv.rank == 3) {
    read_row(sums.pv, 0, size, magnitudes_.data(), row.token(), row.head());
    figures.magnitudes = magnitudes_;
    if (sums.row.present())
      figures.visible = value_at(sums.row, row.token(), row.head(), kRowVisible);
  }
  if (options_.naive.present()) {
    read_row(options_.naive, 0, size, naive_.data(), row.token(), row.head());
    figures.naive = naive_;
  }
  figures_->add(figures);
}

void RowJudge::count(const Row& row) {
  if (row.empty) {
    ++empty_rows_;
    return;
  }
  const bool finite_out = std::any_of(expected_.begin(), expected_.end(),
                                      [](double value) { return std::isfinite(value); });
  const bool finite_lse = lse_rows_ && std::isfinite(lse_rows_->expected(row.token(), row.head()));
  if (!finite_out && !finite_lse) return;
  ++rows_;
  if (!row.bounded) ++vacuous_rows_;
}

void RowJudge::write_to(Judgement& judgement, Gates& gates) const {
  judgement.rows = rows_;
  judgement.vacuous_rows = vacuous_rows_;
  if (figures_) figures_->write_to(judgement);
  if (out_rows_) out_rows_->report_to(gates);
  if (code_rows_) code_rows_->report_to(gates);
  if (lse_rows_) lse_rows_->comparison().report_to(gates);
  if (out_rows_) judgement.tensors.push_back(out_rows_->result());
  if (lse_rows_) judgement.tensors.push_back(lse_rows_->comparison().result());
  if (code_rows_) judgement.tensors.push_back(code_rows_->result());
  if (!strict_rows_ || strict_rows_->result().elements == 0) return;
  judgement.strict = strict_rows_->result().verdict();
  if (judgement.strict == Verdict::kFail) strict_rows_->report_to(gates);
}

}  // namespace attn::judge
