// Judges operations whose answers have rows: out, lse and out_codes, one row (token, query head)
// after the other.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "judge/answer_pairs.h"
#include "judge/exact_lane.h"
#include "judge/figures.h"
#include "judge/lse_rows.h"
#include "judge/row_bounds.h"
#include "judge/row_comparison.h"

namespace attn::judge {

// A bound as evaluated in double may be this much below its formula.
inline constexpr double kBoundSlack = 1.0 + 0x1p-20;

// f8_e4m3fn codes stand for code * this.
double output_scale(const AttentionProblem& problem);

class RowJudge {
 public:
  // `arithmetic` without stored types. Keeps references.
  RowJudge(const BoundSources& bounds, const AttentionProblem& problem, const Expectation& expected,
           const Arithmetic& arithmetic, const std::vector<TensorPair>& pairs,
           const LseForm& lse_form, const JudgeOptions& options);

  void run();

  // Verdicts of tensors, figures and counts; gates that failed.
  void write_to(Judgement& judgement, Gates& gates) const;
  bool expects_a_constant() const { return figures_ && figures_->expects_a_constant(); }
  bool expects_zero() const { return figures_ && figures_->expects_zero(); }
  bool zeros_pass() const { return out_rows_ && out_rows_->zeros_pass(); }
  std::int64_t empty_rows() const { return empty_rows_; }

 private:
  struct Row {
    std::array<std::int64_t, 2> at{};
    RowError error;  // of the answer
    bool empty = false;
    bool bounded = true;  // every finite element is held to something
    bool out_of_range = false;

    std::int64_t token() const { return at[0]; }
    std::int64_t head() const { return at[1]; }
  };

  void add_row(std::int64_t token, std::int64_t head);
  void allow(const RowBounds& source, Row& row, std::vector<double>& allowed);
  ComparedRow held(const Row& row, double hull) const;
  static void compare(RowComparison& rows, const ComparedRow& compared, Row& row);
  void add_out(Row& row);
  void add_lse(Row& row, double allowed);
  void add_strict(const Row& row);
  void add_codes(Row& row);
  void add_figures(const Row& row);
  void count(const Row& row);

  const BoundSources& bounds_;
  const Expectation& expectation_;
  const TensorPair *out_, *codes_;
  const JudgeOptions& options_;
  double output_scale_;
  std::int64_t num_tokens_ = 0, num_heads_ = 0;
  std::unique_ptr<ExactLane> lane_;
  std::unique_ptr<LseRows> lse_rows_;
  std::unique_ptr<RowComparison> out_rows_, strict_rows_, code_rows_;
  std::unique_ptr<Figures> figures_;
  std::int64_t rows_ = 0, vacuous_rows_ = 0, empty_rows_ = 0;
  // Of the row at hand, [head_size_v].
  std::vector<double> expected_, actual_, own_, allowed_, exact_, zeros_, magnitudes_, naive_;
};

}  // namespace attn::judge
