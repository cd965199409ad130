#include "golden/exact/indexer.h"

#include <limits>
#include <utility>
#include <vector>

#include "golden/exact/gather.h"
#include "golden/exact/rounded_row.h"

namespace attn::exact {
namespace {

Elements read_indexer_key(const IndexerOp& op, std::int64_t n, int bits) {
  double scale = 1.0;
  if (op.k_scale.present()) {
    scale = op.k_scale.rank == 2 ? value_at(op.k_scale, n, 0) : value_at(op.k_scale, n);
  }
  Elements key;
  for (std::int64_t d = 0; d < op.key.shape[1]; ++d) {
    key.push(Real(bits, value_at(op.key, n, d)) * Real(bits, scale));
  }
  return key;
}

struct Logit {
  Real value;
  Real size;     // sum_h |w_h| max(q_h.k, 0)
  Real cond_ix;  // sum_h |w_h| sum_d |q_hd k_d|
};

Logit logit_of(const IndexerOp& op, std::int64_t token, const std::vector<Elements>& queries,
               const Elements& key, int bits) {
  Logit logit{Real(bits), Real(bits), Real(bits)};
  for (std::size_t h = 0; h < queries.size(); ++h) {
    const Real weight(bits, value_at(op.weights, token, static_cast<std::int64_t>(h)));
    const Real score = max(dot(queries[h].value, key.value, bits), Real(bits));
    logit.value.add_product(weight, score);
    logit.size.add_product(abs(weight), score);
    logit.cond_ix.add_product(abs(weight), dot(queries[h].size, key.size, bits));
  }
  return logit;
}

}  // namespace

int answer(const IndexerOp& op, const Outputs& outputs) {
  return answer_rows(op.query.shape[0], [&](std::int64_t token, int bits) {
    std::vector<Elements> queries;
    for (std::int64_t h = 0; h < op.query.shape[1]; ++h) {
      queries.push_back(read_query(op.query, token, h, TensorView{}, 0, bits));
    }
    RoundedRow rounded;
    for (std::int64_t n = 0; n < op.key.shape[0]; ++n) {
      Logit logit{Real(bits, -std::numeric_limits<double>::infinity()), Real(bits), Real(bits)};
      if (int_at(op.k_start, token) <= n && n < int_at(op.k_end, token)) {
        logit = logit_of(op, token, queries, read_indexer_key(op, n, bits), bits);
      }
      rounded.nearest("logits", outputs.logits, {token, n}, logit.value, logit.size);
      rounded.upward("cond_ix", outputs.cond_ix, {token, n}, logit.cond_ix);
    }
    return rounded;
  });
}

}  // namespace attn::exact
