// Where bounds come from. The judge takes them through this, so that its gates can be tested with
// bounds made by hand; what certifies is attn::ErrorBound.
#pragma once

#include <cstdint>
#include <span>

#include "attn/error_bound.h"
#include "attn/judgement.h"

namespace attn::judge {

// Bounds of one tensor's rows, as the functions of ErrorBound of the same names.
class RowBounds {
 public:
  virtual ~RowBounds() = default;
  virtual RowError row(std::int64_t token, std::int64_t head, std::span<double> out) const = 0;
  virtual RowError probable_row(std::int64_t token, std::int64_t head,
                                std::span<double> out) const = 0;
  virtual bool has_probable() const = 0;
  virtual RowError logits(std::int64_t token, std::span<double> bounds) const = 0;
};

class CertifiedBounds final : public RowBounds {
 public:
  // Keeps a reference to the expectation and views of the problem.
  CertifiedBounds(const AttentionProblem& problem, const Arithmetic& arithmetic,
                  const Expectation& expected)
      : bound_(problem, arithmetic), expected_(expected) {}

  RowError row(std::int64_t token, std::int64_t head, std::span<double> out) const override {
    return bound_.row(expected_, token, head, out);
  }
  RowError probable_row(std::int64_t token, std::int64_t head,
                        std::span<double> out) const override {
    return bound_.probable_row(expected_, token, head, out);
  }
  bool has_probable() const override { return bound_.has_probable(); }
  RowError logits(std::int64_t token, std::span<double> bounds) const override {
    return bound_.logits(expected_, token, bounds);
  }

 private:
  ErrorBound bound_;
  const Expectation& expected_;
};

// Of the arithmetic that answered, of the same with its answer in codes (null without out_codes),
// and of the expectation.
struct BoundSources {
  const RowBounds* answer = nullptr;
  const RowBounds* codes = nullptr;
  const RowBounds* expectation = nullptr;
};

// judge_answer() with bounds from elsewhere; not of operations that are compared bit for bit.
Judgement judge_by(const BoundSources& bounds, const AttentionProblem& problem,
                   const ExpectedAnswer& expected, const ActualAnswer& actual,
                   const JudgeOptions& options);

}  // namespace attn::judge
