#include "judge/indexer_bound.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/special_values.h"
#include "judge/row_values.h"
#include "judge/summation_depth.h"

namespace attn::judge {
namespace {

double key_scale(const IndexerOp& op, std::int64_t key) {
  if (!op.k_scale.present()) return 1.0;
  return op.k_scale.rank == 2 ? value_at(op.k_scale, key, 0) : value_at(op.k_scale, key);
}

}  // namespace

IndexerBound::IndexerBound(const IndexerOp& op, const Arithmetic& arithmetic)
    : op_(&op),
      arithmetic_(arithmetic),
      query_(operand_error(arithmetic, arithmetic.query, op.query.dtype)),
      key_(operand_error(arithmetic, arithmetic.key,
                         op.k_scale.present() ? std::nullopt : std::optional(op.key.dtype))) {
  const auto heads = static_cast<double>(op.query.shape[1]);
  const auto length = static_cast<double>(op.query.shape[2]);
  const double u = unit_roundoff(arithmetic.vector);
  relative_ = gamma_factor(summation_depth(arithmetic.dot, length, length, true) +
                           (heads + 3.0) * u + query_.unit + key_.unit);
  omega_ = (2.0 * length + 4.0) * underflow(arithmetic, arithmetic.dot.type) /
           std::min(1.0, arithmetic.query.scale * arithmetic.key.scale);
  for (std::int64_t n = 0; n < op.key.shape[0]; ++n) keys_.push_back(sizes_of_key(n));
}

IndexerBound::Sizes IndexerBound::sizes_of_token(std::int64_t token) const {
  std::vector<double> query(static_cast<std::size_t>(op_->query.shape[2]));
  Sizes sizes;
  sizes.weight = 0.0;
  for (std::int64_t h = 0; h < op_->query.shape[1]; ++h) {
    read_row(op_->query, 0, op_->query.shape[2], query.data(), token, h);
    const double weight = std::fabs(value_at(op_->weights, token, h));
    sizes.weight += weight;
    for (const double x : query) {
      sizes.l1 += weight * std::fabs(x);
      sizes.largest = std::max(sizes.largest, std::fabs(x));
    }
  }
  return sizes;
}

IndexerBound::Sizes IndexerBound::sizes_of_key(std::int64_t key) const {
  std::vector<double> elements(static_cast<std::size_t>(op_->key.shape[1]));
  read_row(op_->key, 0, op_->key.shape[1], elements.data(), key);
  Sizes sizes;
  sizes.weight = std::fabs(key_scale(*op_, key));
  for (const double x : elements) {
    sizes.l1 += sizes.weight * std::fabs(x);
    sizes.largest = std::max(sizes.largest, sizes.weight * std::fabs(x));
  }
  return sizes;
}

bool IndexerBound::in_range(const Sizes& token, const Sizes& key) const {
  const Arithmetic& c = arithmetic_;
  return token.largest <= largest_finite(c.query.type) / c.query.scale &&
         key.largest <= largest_finite(c.key.type) / c.key.scale &&
         token.largest * key.l1 <= largest_finite(c.dot.type) / 4.0;
}

RowError IndexerBound::row(const Expectation& expected, std::int64_t token,
                           std::span<double> bounds) const {
  const auto keys = static_cast<std::int64_t>(bounds.size());
  std::vector<double> logits(bounds.size());
  read_row(expected.sums.ix, 0, keys, bounds.data(), token);
  read_row(expected.logits, 0, keys, logits.data(), token);
  const Sizes row = sizes_of_token(token);
  const auto length = static_cast<double>(op_->query.shape[2]);
  const Rounding& out = arithmetic_.out;
  RowError error;
  for (const Sizes& key : keys_) {
    if (in_range(row, key)) continue;
    error.vacuous = "a query, a key or a score is beyond its type";
    error.out_of_range = true;
    std::fill(bounds.begin(), bounds.end(), kInf);
    return error;
  }
  for (std::size_t n = 0; n < bounds.size(); ++n) {
    if (!std::isfinite(logits[n])) {
      bounds[n] = 0.0;  // compared by its pattern
      continue;
    }
    const Sizes& key = keys_[n];
    const double lost = row.weight * query_.quantum * key.l1 +
                        key_.quantum * (row.l1 + row.weight * query_.quantum * length) +
                        omega_ * (row.weight * (1.0 + key.weight) + 1.0);
    const double inside = relative_ * bounds[n] + (1.0 + relative_) * lost;
    bounds[n] = inside * (1.0 + out.unit()) + out.unit() * std::fabs(logits[n]) + out.quantum();
    if (!(bounds[n] < kInf)) {
      bounds[n] = kInf;
      error.vacuous = "a conditioning sum is infinite";
    }
  }
  return error;
}

}  // namespace attn::judge
