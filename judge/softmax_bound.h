// The error bound of softmax(u) v, one row at a time: six constants times the conditioning sums.
// docs/numerics.md derives every term under the names used here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "attn/arithmetic.h"
#include "attn/conditioning.h"
#include "judge/operand_error.h"

namespace attn::judge {

// What the bound needs to know of a problem beside its conditioning sums.
struct SoftmaxTerms {
  std::int64_t dot_length = 0;  // products of a score
  int num_biases = 0;           // tensors added to a score
  double soft_cap = 0.0;        // 0 = none
  double abs_scale = 1.0;
  bool sink = false;
  bool lse_includes_sink = true;
  // Types as stored; none when decoding multiplies by a scale.
  std::optional<DType> query, key, value;
  // Largest magnitudes of scales that a kernel may multiply by after a sum, in which underflow then
  // weighs more.
  double query_scale = 1.0;
  double key_scale = 1.0, value_scale = 1.0;  // of a whole tensor, head or request
  bool key_scale_in_cache = false, value_scale_in_cache = false;  // one for a token or block
  // Expanded latent attention: longest product with w_uk, w_uv (else 0), and their types.
  std::int64_t projected = 0;
  std::optional<DType> w_uk, w_uv;
};

// The bound of element j is
//   pv A_j + pav K_j + puv M_j + v V1_j + out |o_j| + root_pv sqrt(A_j) + constant
// with A, K, M, V1 the conditioning sums cond_pv, cond_pav, cond_puv, cond_v and o the right
// answer.
struct RowBound {
  double pv = 0.0, pav = 0.0, puv = 0.0, v = 0.0, out = 0.0, root_pv = 0.0, constant = 0.0;
  double value_limit = 0.0;  // where V1 is beyond it the accumulator may overflow: no bound
  double lse = 0.0;
  bool lse_may_vanish = false;  // RowError::lse_may_vanish
  double hull = 0.0;            // RowError::hull
  std::string_view vacuous;     // RowError::vacuous
  bool out_of_range = false;
};

using RowSums = std::array<double, kNumRowFields>;

class SoftmaxBound {
 public:
  // `arithmetic` without stored types.
  SoftmaxBound(const Arithmetic& arithmetic, const SoftmaxTerms& terms);

  // Of a row that sees a key.
  RowBound row(const RowSums& sums) const;
  // The probabilistic tier: lse and hull are not bounded.
  RowBound probable_row(const RowSums& sums) const;

 private:
  struct Logit;     // C_a, C_u, C_0 of a row
  struct Exponent;  // alpha, beta, kappa, X, R
  struct Factors;   // phi_N, phi_l, T, W, tau, q_l

  void set_projection();
  Logit logit(const RowSums& sums) const;
  Exponent exponent(const RowSums& sums) const;
  Factors factors(const RowSums& sums) const;
  double lse(const RowSums& sums, const Exponent& x, const Factors& f, double relative) const;
  double denominator(const RowSums& sums, const Exponent& x, const Factors& f) const;
  double hull(const RowSums& sums, const Factors& f) const;
  std::string_view range_fault(const RowSums& sums) const;
  bool weights_overflow(const RowSums& sums, double growth) const;

  bool merges() const { return arithmetic_.splits > 1; }
  bool merges_lse() const { return merges() && arithmetic_.merge_kind == MergeKind::kLse; }

  Arithmetic arithmetic_;
  SoftmaxTerms terms_;
  double u_ = 0.0;      // of scalar operations
  double omega_ = 0.0;  // what one of them may lose to underflow
  OperandError query_, key_, value_;
  double c_a_ = 0.0;  // relative error of a score before cap and biases, to a
  double nu_ = 0.0;   // of the normalisation
  double c_e_ = 0.0, c_s_ = 0.0;
  double keys_projected_ = 0.0, values_projected_ = 0.0;  // by the products with w_uk, w_uv
  std::string_view projection_fault_;
};

}  // namespace attn::judge
