#include "attn/error_bound.h"

#include <fmt/core.h>

#include "attn/error.h"
#include "judge/bound_terms.h"
#include "judge/differential_bound.h"
#include "judge/indexer_bound.h"
#include "judge/softmax_bound.h"
#include "judge/state_bound.h"

namespace attn {
class ErrorBound::Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual RowError row(const Expectation&, std::int64_t, std::int64_t, std::span<double>) const {
    throw Error("the operation has no rows with a bound");
  }
  virtual RowError probable_row(const Expectation&, std::int64_t, std::int64_t,
                                std::span<double>) const {
    throw Error("the operation has no probabilistic bound");
  }
  virtual bool has_probable() const { return false; }
  virtual RowError logits(const Expectation&, std::int64_t, std::span<double>) const {
    throw Error("the operation has no logits");
  }

  static std::unique_ptr<const Evaluator> make(const AttentionProblem& problem,
                                               const Arithmetic& arithmetic);

 private:
  class Softmax;
  class Differential;
  class Indexer;
};

class ErrorBound::Evaluator::Softmax final : public Evaluator {
 public:
  Softmax(const Arithmetic& arithmetic, const judge::SoftmaxTerms& terms)
      : bound_(arithmetic, terms) {}
  RowError row(const Expectation& expected, std::int64_t token, std::int64_t head,
               std::span<double> out) const override {
    return judge::state_row(bound_, expected, token, head, out);
  }
  RowError probable_row(const Expectation& expected, std::int64_t token, std::int64_t head,
                        std::span<double> out) const override {
    return judge::probable_state_row(bound_, expected, token, head, out);
  }
  bool has_probable() const override { return true; }

 private:
  judge::SoftmaxBound bound_;
};

class ErrorBound::Evaluator::Differential final : public Evaluator {
 public:
  Differential(const DifferentialOp& op, const Arithmetic& arithmetic) : bound_(op, arithmetic) {}
  RowError row(const Expectation& expected, std::int64_t token, std::int64_t head,
               std::span<double> out) const override {
    return bound_.row(expected, token, head, out);
  }

 private:
  judge::DifferentialBound bound_;
};

class ErrorBound::Evaluator::Indexer final : public Evaluator {
 public:
  Indexer(const IndexerOp& op, const Arithmetic& arithmetic) : bound_(op, arithmetic) {}
  RowError logits(const Expectation& expected, std::int64_t token,
                  std::span<double> bounds) const override {
    return bound_.row(expected, token, bounds);
  }

 private:
  judge::IndexerBound bound_;
};

std::unique_ptr<const ErrorBound::Evaluator> ErrorBound::Evaluator::make(
    const AttentionProblem& problem, const Arithmetic& arithmetic) {
  const Operation& operation = problem.operation();
  switch (problem.kind()) {
    case OpKind::kAttention:
      return std::make_unique<Softmax>(arithmetic,
                                       judge::bound_terms(std::get<AttentionOp>(operation)));
    case OpKind::kDifferential:
      return std::make_unique<Differential>(std::get<DifferentialOp>(operation), arithmetic);
    case OpKind::kMla:
      return std::make_unique<Softmax>(arithmetic, judge::bound_terms(std::get<MlaOp>(operation)));
    case OpKind::kMlaSparse:
      return std::make_unique<Softmax>(arithmetic,
                                       judge::bound_terms(std::get<MlaSparseOp>(operation)));
    case OpKind::kIndexer:
      return std::make_unique<Indexer>(std::get<IndexerOp>(operation), arithmetic);
    case OpKind::kMergeStates: {
      const auto& op = std::get<MergeStatesOp>(operation);
      return std::make_unique<Softmax>(judge::merging_arithmetic(arithmetic, op),
                                       judge::bound_terms(op));
    }
    case OpKind::kCacheWrite:
    case OpKind::kMlaCacheWrite:
      break;
  }
  throw Error(
      fmt::format("{} has no error bound: it is compared bit for bit", name(problem.kind())));
}

ErrorBound::ErrorBound(const AttentionProblem& problem, const Arithmetic& arithmetic)
    : evaluator_(Evaluator::make(problem, arithmetic)) {
  for (const Rounding* rounding : {&arithmetic.out, &arithmetic.lse}) {
    if (rounding->type == NumberFormat::kStored) {
      throw Error("the arithmetic does not say how answers are stored");
    }
  }
}

ErrorBound::~ErrorBound() = default;
ErrorBound::ErrorBound(ErrorBound&&) noexcept = default;

RowError ErrorBound::row(const Expectation& expected, std::int64_t token, std::int64_t head,
                         std::span<double> out) const {
  return evaluator_->row(expected, token, head, out);
}

RowError ErrorBound::probable_row(const Expectation& expected, std::int64_t token,
                                  std::int64_t head, std::span<double> out) const {
  return evaluator_->probable_row(expected, token, head, out);
}

bool ErrorBound::has_probable() const { return evaluator_->has_probable(); }

RowError ErrorBound::logits(const Expectation& expected, std::int64_t token,
                            std::span<double> bounds) const {
  return evaluator_->logits(expected, token, bounds);
}

}  // namespace attn
