#include <optional>

#include "attn/parallel.h"
#include "reference/conditioning.h"
#include "reference/latent.h"
#include "reference/mla.h"
#include "reference/store.h"

namespace attn::reference {
namespace {

// What one token lists: a prefix of the list, without -1.
struct ListedKeys {
  std::vector<KvSlot> slots;
  std::vector<std::int64_t> places;  // in the list
};

ListedKeys listed_keys(const MlaSparseOp& op, std::int64_t request, std::int64_t token) {
  const std::int64_t listed =
      op.topk_lens.present() ? int_at(op.topk_lens, token) : op.topk_indices.shape[1];
  const std::int64_t block_size = op.mla.kv_cache.shape[1];
  ListedKeys keys;
  for (std::int64_t i = 0; i < listed; ++i) {
    const std::int64_t index = int_at(op.topk_indices, token, i);
    if (index < 0) continue;
    const std::int64_t block = op.index_space == TopkIndexSpace::kSlot
                                   ? index / block_size
                                   : int_at(op.mla.block_table, request, index / block_size);
    keys.slots.push_back({block, index % block_size});
    keys.places.push_back(i);
  }
  return keys;
}

void solve_token(const MlaSparseOp& op, std::int64_t request, std::int64_t token,
                 const Outputs& outputs) {
  const MlaOp& mla = op.mla;
  const ListedKeys listed = listed_keys(op, request, token);
  const RowMatrix keys = gather_latent(mla, listed.slots);
  const RowMatrix values = first_columns(keys, mla.kv_lora_rank);
  Magnitudes key_sizes, value_sizes;
  if (wants_sums(outputs)) {
    key_sizes = with_row_sizes(keys.cwiseAbs());
    value_sizes = with_row_sizes(values.cwiseAbs());
  }
  for (std::int64_t head = 0; head < mla.query.shape[1]; ++head) {
    const RowMatrix query = gather_query(mla.query, {}, token, head, 0);
    ScoredKeys scored;
    for (Eigen::Index i = 0; i < keys.rows(); ++i) {
      const double u = mla.scale * dot(query.data(), keys.row(i).data(), keys.cols());
      if (u == -kInf) continue;
      scored.score.push_back(u);
      scored.value_row.push_back(i);
    }
    std::optional<double> sink;
    if (op.sinks.present()) sink = value_at(op.sinks, head);
    const State state = attend(scored, values, mla.kv_lora_rank, sink, op.lse_includes_sink);
    store_state(outputs, token, head, state);
    if (!wants_sums(outputs)) continue;
    const ConditionedRow row = {scored,    {},          listed.places, query,
                                key_sizes, value_sizes, mla.scale,     sink};
    store_sums(outputs, row_sums(row, state), token, head);
  }
}

}  // namespace

void mla_sparse(const MlaSparseOp& op, const Outputs& outputs) {
  const MlaOp& mla = op.mla;
  for (std::int64_t r = 0; r < mla.seq_lens.shape[0]; ++r) {
    const std::int64_t first = int_at(mla.query_start_loc, r);
    const std::int64_t count = int_at(mla.query_start_loc, r + 1) - first;
    parallel_for(count, [&](std::int64_t i, int) { solve_token(op, r, first + i, outputs); });
  }
}

}  // namespace attn::reference
