#include <cmath>
#include <vector>

#include "reference/second/attention_row.h"
#include "reference/second/operations.h"
#include "reference/second/stored_row.h"

namespace attn::second {
namespace {

// (1 - lambda_init) * norm(first - lambda * second), in `first`.
void combine(const DifferentialOp& op, std::vector<long double>& first,
             const std::vector<long double>& second) {
  long double squares = 0.0L;
  for (std::size_t j = 0; j < first.size(); ++j) {
    first[j] -= op.lambda * second[j];
    squares += first[j] * first[j];
  }
  const long double root = std::sqrt(squares / static_cast<long double>(first.size()) + op.eps);
  for (std::size_t j = 0; j < first.size(); ++j) {
    if (op.norm_weight.present()) first[j] *= value_at(op.norm_weight, j) / root;
    first[j] *= 1.0L - op.lambda_init;
  }
}

}  // namespace

void differential(const DifferentialOp& op, const Outputs& outputs) {
  const AttentionOp& inner = op.attention;
  for (std::int64_t r = 0; r < inner.num_reqs(); ++r) {
    for (std::int64_t i = 0; i < inner.query_len(r); ++i) {
      const RowPlace at = row_place(inner.query_start_loc, inner.seq_lens, r, i);
      for (std::int64_t pair = 0; pair < inner.num_heads() / 2; ++pair) {
        const std::int64_t kv_pair = pair / inner.num_queries_per_kv();
        const std::vector<std::int64_t> values = {2 * kv_pair, 2 * kv_pair + 1};
        RowAnswer row = attention_row(inner, at, {2 * pair, 2 * kv_pair, values}).answer();
        combine(op, row.out,
                attention_row(inner, at, {2 * pair + 1, 2 * kv_pair + 1, values}).answer().out);
        store_row(outputs, row, inner.query_start(r) + i, pair);
      }
    }
  }
}

}  // namespace attn::second
