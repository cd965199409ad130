// The certified error bound: what a correct kernel may get wrong, element by element, when its
// arithmetic is the one it declared. Derivation and sources: docs/numerics.md.
//
// "Certified" means a theorem about that arithmetic on the stored inputs. It says nothing about a
// kernel that breaks its declaration.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "attn/arithmetic.h"
#include "attn/problem.h"
#include "attn/view.h"

namespace attn {

// Conditioning sums by name, shapes and types as attn/conditioning.h says; absent ones are not of
// the operation. Host memory.
struct ConditioningSums {
  TensorView pv, pav, puv, v, row, o, ix;
};

struct NamedSum {
  const char* name;
  TensorView ConditioningSums::*view;
};

inline constexpr NamedSum kNamedSums[] = {
    {"cond_pv", &ConditioningSums::pv},   {"cond_pav", &ConditioningSums::pav},
    {"cond_puv", &ConditioningSums::puv}, {"cond_v", &ConditioningSums::v},
    {"cond_row", &ConditioningSums::row}, {"cond_o", &ConditioningSums::o},
    {"cond_ix", &ConditioningSums::ix}};

// The sums that `tensor(name)` gives; absent views for those it has not.
template <class TensorByName>
ConditioningSums conditioning_sums(const TensorByName& tensor) {
  ConditioningSums sums;
  for (const NamedSum& sum : kNamedSums) sums.*sum.view = tensor(sum.name);
  return sums;
}

// The right answer: float64 (or correctly rounded), and how sensitive it is. LSE in the form
// LseForm{}.
struct Expectation {
  TensorView out;     // [num_tokens, num_heads, head_size_v]
  TensorView lse;     // [num_heads, num_tokens], optional
  TensorView logits;  // [num_tokens, num_keys], indexer
  ConditioningSums sums;
};

// Of one row (token and query head).
struct RowError {
  // Why there is no bound ("score error exceeds 1"); empty when there is one. A row whose answer is
  // NaN or whose log-sum-exp is +inf has no bound either: its pattern is what is compared.
  std::string_view vacuous;
  // The problem is beyond the formats of the contract, an operand or a sum may overflow: nothing is
  // promised, not even a finite answer. Vacuous, too.
  bool out_of_range = false;
  // Infinite where vacuous, and where the keys' weights may vanish beside a sink that lse does not
  // count: then it may be computed as -inf, and nothing is promised of it.
  double lse = 0.0;
  bool lse_may_vanish = false;
  // A row that sees no key: `out` is exactly 0, lse exactly the sink or -inf.
  bool empty = false;
  // What |out| cannot exceed even where there is no bound: a weighted mean lies in the hull of
  // its values (and 0). Infinite when not even that holds.
  double hull = 0.0;
};

// Evaluates the bound of one problem under one arithmetic. Keeps views of the problem.
class ErrorBound {
 public:
  // `arithmetic` without stored types (with_stored_type); Error for operations that are compared
  // bit for bit.
  ErrorBound(const AttentionProblem& problem, const Arithmetic& arithmetic);
  ~ErrorBound();
  ErrorBound(ErrorBound&&) noexcept;

  // Of operations with rows. `out` [head_size_v] receives the bounds of out[token, head, :];
  // infinite where vacuous.
  RowError row(const Expectation& expected, std::int64_t token, std::int64_t head,
               std::span<double> out) const;

  // As row() from the probabilistic tier: independent errors of mean zero, each sum within six
  // standard deviations. Never certifies. Only where has_probable(); its lse is not bounded.
  RowError probable_row(const Expectation& expected, std::int64_t token, std::int64_t head,
                        std::span<double> out) const;
  bool has_probable() const;

  // Of the indexer: bounds of logits[token, :] [num_keys].
  RowError logits(const Expectation& expected, std::int64_t token, std::span<double> bounds) const;

 private:
  class Evaluator;
  std::unique_ptr<const Evaluator> evaluator_;
};

}  // namespace attn
