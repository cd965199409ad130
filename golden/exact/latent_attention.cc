#include "golden/exact/latent_attention.h"

#include <optional>
#include <utility>
#include <vector>

#include "golden/exact/gather.h"
#include "golden/exact/latent.h"
#include "golden/exact/mask.h"
#include "golden/exact/score.h"
#include "golden/exact/store_state.h"

namespace attn::exact {
namespace {

// A token that a row reads: where it lies, and its position or its place in the row's list.
struct Listed {
  std::int64_t place;
  std::int64_t block;
  std::int64_t slot;
};

Listed in_block_table(const MlaOp& op, std::int64_t request, std::int64_t position,
                      std::int64_t place) {
  const std::int64_t block_size = op.kv_cache.shape[1];
  return {place, int_at(op.block_table, request, position / block_size), position % block_size};
}

std::vector<Listed> tokens_of(const MlaOp& op, const RowPlace& row) {
  std::vector<Listed> tokens;
  for (std::int64_t k = 0; k < row.seq_len; ++k) {
    if (op.causal && k > row.position) break;
    tokens.push_back(in_block_table(op, row.request, k, k));
  }
  return tokens;
}

std::vector<Listed> tokens_of(const MlaSparseOp& op, const RowPlace& row) {
  const std::int64_t kept =
      op.topk_lens.present() ? int_at(op.topk_lens, row.token) : op.topk_indices.shape[1];
  const std::int64_t block_size = op.mla.kv_cache.shape[1];
  std::vector<Listed> tokens;
  for (std::int64_t place = 0; place < kept; ++place) {
    const std::int64_t index = int_at(op.topk_indices, row.token, place);
    if (index < 0) continue;
    if (op.index_space == TopkIndexSpace::kRequest) {
      tokens.push_back(in_block_table(op.mla, row.request, index, place));
    } else {
      tokens.push_back({place, index / block_size, index % block_size});
    }
  }
  return tokens;
}

RoundedRow rounded_row(const MlaOp& op, const Outputs& outputs, const RowPlace& row,
                       std::int64_t head, const std::vector<Listed>& tokens,
                       std::optional<double> sink, bool lse_includes_sink, int bits) {
  const Elements query = read_query(op.query, row.token, head, TensorView{}, 0, bits);
  const Real scale(bits, op.scale);
  std::vector<ScoredKey> keys;
  for (const Listed& token : tokens) {
    const LatentRow latent = read_latent_row(op, token.block, token.slot, bits);
    keys.push_back(score_key(query, latent_key(op, latent, head, bits), scale, 0.0, token.place));
  }
  const std::int64_t size_v = op.form == MlaForm::kExpanded ? op.w_uv.shape[2] : op.kv_lora_rank;
  const auto read_value = [&](std::size_t i) {
    const LatentRow latent = read_latent_row(op, tokens[i].block, tokens[i].slot, bits);
    return latent_value(op, latent, head, bits);
  };
  const RowState state =
      state_of_row(std::move(keys), sink, size_of_query(query, scale), size_v, read_value, bits);
  RoundedRow rounded;
  store_out(rounded, outputs, row.token, head, state);
  store_lse(rounded, outputs, row.token, head, state, lse_includes_sink);
  store_sums(rounded, outputs, row.token, head, state);
  return rounded;
}

std::int64_t num_rows(const MlaOp& op) {
  return int_at(op.query_start_loc, op.seq_lens.shape[0]) * op.query.shape[1];
}

}  // namespace

int answer(const MlaOp& op, const Outputs& outputs) {
  const std::int64_t num_heads = op.query.shape[1];
  return answer_rows(num_rows(op), [&](std::int64_t i, int bits) {
    const RowPlace row = place_of(op.query_start_loc, op.seq_lens, i / num_heads);
    return rounded_row(op, outputs, row, i % num_heads, tokens_of(op, row), std::nullopt, true,
                       bits);
  });
}

int answer(const MlaSparseOp& op, const Outputs& outputs) {
  const std::int64_t num_heads = op.mla.query.shape[1];
  return answer_rows(num_rows(op.mla), [&](std::int64_t i, int bits) {
    const RowPlace row = place_of(op.mla.query_start_loc, op.mla.seq_lens, i / num_heads);
    const std::int64_t head = i % num_heads;
    std::optional<double> sink;
    if (op.sinks.present()) sink = value_at(op.sinks, head);
    return rounded_row(op.mla, outputs, row, head, tokens_of(op, row), sink, op.lse_includes_sink,
                       bits);
  });
}

}  // namespace attn::exact
