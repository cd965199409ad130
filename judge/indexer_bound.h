// The error bound of the indexer's logits: sums of rectified dot products.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attn/error_bound.h"
#include "attn/operation.h"
#include "judge/operand_error.h"

namespace attn::judge {

// B = g sum_h |w_h| sum_d |q_hd k_d|, what operands lose to underflow, and the rounding of the
// answer. relu is 1-Lipschitz; weights, key scales and the sum over heads add their roundings.
class IndexerBound {
 public:
  // Keeps a pointer to `op`. `arithmetic` without stored types.
  IndexerBound(const IndexerOp& op, const Arithmetic& arithmetic);

  // Bounds of logits[token, :].
  RowError row(const Expectation& expected, std::int64_t token, std::span<double> bounds) const;

 private:
  // Of the query heads of a token or of a key.
  struct Sizes {
    double l1 = 0.0;  // sum of |elements|; of a token weighted and added over its heads
    double largest = 0.0;
    double weight = 1.0;  // sum of |weights| of a token; |scale| of a key
  };
  Sizes sizes_of_token(std::int64_t token) const;
  Sizes sizes_of_key(std::int64_t key) const;
  bool in_range(const Sizes& token, const Sizes& key) const;

  const IndexerOp* op_;
  Arithmetic arithmetic_;
  double relative_ = 0.0;
  double omega_ = 0.0;  // of one score's operations
  OperandError query_, key_;
  std::vector<Sizes> keys_;
};

}  // namespace attn::judge
