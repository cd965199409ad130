#include <cmath>
#include <limits>

#include "reference/second/operations.h"
#include "reference/second/stored_row.h"

namespace attn::second {
namespace {

long double key_scale(const TensorView& k_scale, std::int64_t n) {
  if (!k_scale.present()) return 1.0L;
  return k_scale.rank == 2 ? value_at(k_scale, n, 0) : value_at(k_scale, n);
}

long double logit(const IndexerOp& op, std::int64_t token, std::int64_t n) {
  const long double scale = key_scale(op.k_scale, n);
  long double sum = 0.0L;
  for (std::int64_t h = 0; h < op.query.shape[1]; ++h) {
    long double dot = 0.0L;
    for (std::int64_t d = 0; d < op.query.shape[2]; ++d) {
      dot += value_at(op.query, token, h, d) * (scale * value_at(op.key, n, d));
    }
    if (dot < 0.0L) dot = 0.0L;  // NaN stays
    sum += value_at(op.weights, token, h) * dot;
  }
  return sum;
}

}  // namespace

void indexer(const IndexerOp& op, const Outputs& outputs) {
  if (!outputs.logits.present()) return;
  for (std::int64_t t = 0; t < op.query.shape[0]; ++t) {
    const std::int64_t start = int_at(op.k_start, t);
    const std::int64_t end = int_at(op.k_end, t);
    for (std::int64_t n = 0; n < op.key.shape[0]; ++n) {
      const bool inside = start <= n && n < end;
      store(outputs.logits,
            inside ? logit(op, t, n) : -std::numeric_limits<long double>::infinity(), t, n);
    }
  }
}

}  // namespace attn::second
