#include "golden/exact/attention.h"

#include <optional>
#include <utility>

#include "golden/exact/bias.h"
#include "golden/exact/gather.h"
#include "golden/exact/score.h"
#include "golden/exact/store_state.h"

namespace attn::exact {
namespace {

void store_codes(RoundedRow& to, const AttentionOp& op, const Outputs& outputs, std::int64_t token,
                 std::int64_t head, const RowState& state, int bits) {
  if (!op.output_scale.present()) return;
  const Real scale(bits, value_at(op.output_scale, 0));
  for (std::size_t j = 0; j < state.out.value.size(); ++j) {
    to.out_code("out_codes", outputs.out_codes, {token, head, static_cast<std::int64_t>(j)},
                state.out.value[j] / scale, state.out.size[j] / scale);
  }
}

}  // namespace

ScoredRow score_row(const AttentionOp& op, const RowPlace& row, const HeadPair& heads, int bits) {
  const Elements query =
      read_query(op.query, row.token, heads.head, op.q_scale, heads.kv_head, bits);
  const Real scale(bits, op.scale);
  ScoredRow scored{{}, size_of_query(query, scale)};
  for (std::int64_t k = 0; k < row.seq_len; ++k) {
    if (!may_see(op.mask, row, heads.head, k)) continue;
    AddedBias bias = added_bias(op.bias, row, heads.head, k, bits);
    if (bias.hides) continue;
    const Elements key = read_key(op.kv, row.request, k, heads.kv_head, bits);
    ScoredKey scored_key = score_key(query, key, scale, op.logits_soft_cap, k);
    scored_key.logit += bias.sum;
    scored_key.bias_size = std::move(bias.size);
    scored.keys.push_back(std::move(scored_key));
  }
  return scored;
}

int answer(const AttentionOp& op, const Outputs& outputs) {
  const std::int64_t num_heads = op.num_heads();
  return answer_rows(op.num_tokens() * num_heads, [&](std::int64_t i, int bits) {
    const RowPlace row = place_of(op.query_start_loc, op.seq_lens, i / num_heads);
    const std::int64_t head = i % num_heads;
    const std::int64_t kv_head = head / op.num_queries_per_kv();
    std::optional<double> sink;
    if (op.sinks.present()) sink = value_at(op.sinks, head);
    ScoredRow scored = score_row(op, row, {head, kv_head}, bits);
    std::vector<std::int64_t> positions;
    positions.reserve(scored.keys.size());
    for (const ScoredKey& key : scored.keys) positions.push_back(key.place);
    const RowState state = state_of_row(
        std::move(scored.keys), sink, scored.query, op.head_size_v(),
        [&](std::size_t key) {
          return read_value(op.kv, row.request, positions[key], kv_head, bits);
        },
        bits);
    RoundedRow rounded;
    store_out(rounded, outputs, row.token, head, state);
    store_codes(rounded, op, outputs, row.token, head, state, bits);
    store_lse(rounded, outputs, row.token, head, state, op.lse_includes_sink);
    store_sums(rounded, outputs, row.token, head, state);
    return rounded;
  });
}

}  // namespace attn::exact
