#include "reference/indexer.h"

#include <cmath>

#include "attn/parallel.h"
#include "reference/conditioning.h"
#include "reference/gather.h"
#include "reference/store.h"

namespace attn::reference {
namespace {

RowMatrix gather_index_keys(const IndexerOp& op) {
  RowMatrix rows = zero_rows(static_cast<std::size_t>(op.key.shape[0]), op.key.shape[1]);
  for (std::int64_t n = 0; n < op.key.shape[0]; ++n) {
    double scale = 1.0;
    if (op.k_scale.present()) {
      scale = op.k_scale.rank == 2 ? value_at(op.k_scale, n, 0) : value_at(op.k_scale, n);
    }
    for (std::int64_t d = 0; d < op.key.shape[1]; ++d) rows(n, d) = value_at(op.key, n, d) * scale;
  }
  return rows;
}

double rectified(double x) { return x < 0.0 ? 0.0 : x; }

// sum_h |w_h| * sum_d |q_hd * k_d| of every key in the range, not below it; 0 outside.
void store_magnitudes(const IndexerOp& op, const RowMatrix& key_sizes, std::int64_t token,
                      const Outputs& outputs) {
  const std::int64_t first = int_at(op.k_start, token);
  const std::int64_t end = int_at(op.k_end, token);
  Eigen::VectorXd sums = Eigen::VectorXd::Zero(key_sizes.rows());
  for (std::int64_t head = 0; head < op.query.shape[1]; ++head) {
    const RowMatrix query = gather_query(op.query, {}, token, head, 0).cwiseAbs();
    const double weight = std::abs(value_at(op.weights, token, head));
    for (std::int64_t n = first; n < end; ++n) {
      sums[n] += weight * dot(query.data(), key_sizes.row(n).data(), key_sizes.cols());
    }
  }
  for (Eigen::Index n = 0; n < sums.size(); ++n) {
    store(outputs.cond_ix, rounded_up(sums[n] * (1.0 + kSumSlack)), token, n);
  }
}

void index_token(const IndexerOp& op, const RowMatrix& keys, std::int64_t token,
                 const Outputs& outputs) {
  const std::int64_t first = int_at(op.k_start, token);
  const std::int64_t end = int_at(op.k_end, token);
  Eigen::VectorXd logits = Eigen::VectorXd::Constant(keys.rows(), -kInf);
  for (std::int64_t n = first; n < end; ++n) logits[n] = 0.0;
  for (std::int64_t head = 0; head < op.query.shape[1]; ++head) {
    const RowMatrix query = gather_query(op.query, {}, token, head, 0);
    const double weight = value_at(op.weights, token, head);
    for (std::int64_t n = first; n < end; ++n) {
      logits[n] += weight * rectified(dot(query.data(), keys.row(n).data(), keys.cols()));
    }
  }
  for (std::int64_t n = 0; n < logits.size(); ++n) store(outputs.logits, logits[n], token, n);
}

}  // namespace

void indexer(const IndexerOp& op, const Outputs& outputs) {
  const RowMatrix keys = gather_index_keys(op);
  const RowMatrix key_sizes = keys.cwiseAbs();
  parallel_for(op.query.shape[0], [&](std::int64_t token, int) {
    if (outputs.logits.present()) index_token(op, keys, token, outputs);
    if (outputs.cond_ix.present()) store_magnitudes(op, key_sizes, token, outputs);
  });
}

}  // namespace attn::reference
