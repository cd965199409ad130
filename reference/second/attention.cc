#include <cmath>

#include "reference/second/attention_row.h"
#include "reference/second/operations.h"
#include "reference/second/score_bias.h"
#include "reference/second/stored_row.h"
#include "reference/second/visible_keys.h"

namespace attn::second {
namespace {

// Scaled and capped, before biases.
long double score(const AttentionOp& op, const RowPlace& at, const RowHeads& heads,
                  std::int64_t k) {
  const std::int64_t token = op.query_start(at.request) + at.row;
  long double query_scale = 1.0L;
  if (op.q_scale.present()) {
    query_scale = value_at(op.q_scale, op.q_scale.shape[0] == 1 ? 0 : heads.key);
  }
  long double dot = 0.0L;
  for (std::int64_t d = 0; d < op.head_size(); ++d) {
    dot += query_scale * value_at(op.query, token, heads.query, d) *
           decode_key(op.kv, at.request, k, heads.key, d);
  }
  const long double scaled = op.scale * dot;
  const long double cap = op.logits_soft_cap;
  return cap == 0.0L ? scaled : cap * std::tanh(scaled / cap);
}

void store_codes(const AttentionOp& op, const Outputs& outputs, const RowAnswer& row,
                 std::int64_t token, std::int64_t head) {
  if (!outputs.out_codes.present()) return;
  const long double scale = value_at(op.output_scale, 0);
  for (std::size_t j = 0; j < row.out.size(); ++j) {
    const auto quotient = static_cast<double>(row.out[j] / scale);
    store_code(DType::kF8E4M3FN, encode(DType::kF8E4M3FN, quotient, Overflow::kSaturate),
               outputs.out_codes.at(token, head, j));
  }
}

}  // namespace

RowSoftmax attention_row(const AttentionOp& op, const RowPlace& at, const RowHeads& heads) {
  const std::int64_t width = op.head_size_v();
  RowSoftmax softmax(width * static_cast<std::int64_t>(heads.values.size()));
  for (const std::int64_t k : visible_keys(op, at, heads.query)) {
    const long double logit = score(op, at, heads, k) + score_bias(op, at, heads.query, k).sum;
    softmax.add(logit, [&](std::int64_t j) -> long double {
      const std::int64_t head = heads.values[static_cast<std::size_t>(j / width)];
      return decode_value(op.kv, at.request, k, head, j % width);
    });
  }
  return softmax;
}

void attention(const AttentionOp& op, const Outputs& outputs) {
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
    for (std::int64_t i = 0; i < op.query_len(r); ++i) {
      const RowPlace at = row_place(op.query_start_loc, op.seq_lens, r, i);
      for (std::int64_t h = 0; h < op.num_heads(); ++h) {
        const std::int64_t kv_head = h / op.num_queries_per_kv();
        const RowSoftmax softmax = attention_row(op, at, {h, kv_head, {kv_head}});
        const RowAnswer row = op.sinks.present()
                                  ? softmax.answer(value_at(op.sinks, h), op.lse_includes_sink)
                                  : softmax.answer();
        store_row(outputs, row, op.query_start(r) + i, h);
        store_codes(op, outputs, row, op.query_start(r) + i, h);
      }
    }
  }
}

}  // namespace attn::second
