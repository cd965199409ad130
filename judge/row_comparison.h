// Compares a tensor row by row with what is allowed of each element, and says which gates fail.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "attn/judgement.h"
#include "judge/gates.h"

namespace attn::judge {

// Elements at[..., first], at[..., first + 1], ... of the last axis; all spans of one length.
struct ComparedRow {
  std::span<const std::int64_t> at;
  std::int64_t first = 0;
  std::span<const double> expected, actual;
  std::span<const double> allowed;  // infinite: no bound
  double hull = std::numeric_limits<double>::infinity();
  Gate gate = Gate::kBound;  // the one an error beyond what is allowed fails
};

// Specials, in place and sign: true when `actual` may stand for `expected`. Infinity and the
// largest finite value of the stored type are overflows of an answer that `reach`es beyond it.
bool special_fits(double expected, double actual, double reach, double largest);

class RowComparison {
 public:
  // `largest` is the largest finite value of the type the tensor is stored in.
  RowComparison(std::string name, double largest);

  void add(const ComparedRow& row);
  // Elements of which nothing is promised.
  void pass_over(std::int64_t elements) { result_.elements += elements; }

  // What the gates say of this tensor, by their worst elements.
  void report_to(Gates& gates) const;
  const TensorComparison& result() const { return result_; }
  // Whether zeros would pass, and not because the answer is known to be zero: no finite element is
  // larger than what is allowed of it.
  bool zeros_pass() const { return allows_errors_ && !refuses_zeros_; }

 private:
  struct Failure {
    double ratio;
    double limit;  // of |actual|, by the hull
    WorstElement element;
  };

  void look_for_zeros(const ComparedRow& row);
  void judge_element(const ComparedRow& row, std::size_t j);
  void note(double ratio, const ComparedRow& row, std::size_t j);
  void fail(Gate gate, double ratio, const ComparedRow& row, std::size_t j);
  std::string reason(Gate gate, const Failure& failure) const;

  TensorComparison result_;
  double largest_;
  bool allows_errors_ = false, refuses_zeros_ = false;
  std::array<std::optional<Failure>, kNumGates> failures_;
};

}  // namespace attn::judge
