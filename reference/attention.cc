#include "reference/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "attn/parallel.h"
#include "reference/bias.h"
#include "reference/mask.h"
#include "reference/partition.h"
#include "reference/softmax.h"

namespace attn::reference {
namespace {

// Rows that share one gathering of keys.
constexpr std::int64_t kRowBlock = 64;

struct RowBlock {
  std::int64_t request = 0;
  std::int64_t first_row = 0;  // local
  std::int64_t num_rows = 0;
};

std::vector<RowBlock> row_blocks(const AttentionOp& op) {
  std::vector<RowBlock> blocks;
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
    for (std::int64_t row = 0; row < op.query_len(r); row += kRowBlock) {
      blocks.push_back({r, row, std::min(kRowBlock, op.query_len(r) - row)});
    }
  }
  return blocks;
}

class RowBlockSolver {
 public:
  RowBlockSolver(const AttentionOp& op, const Outputs& outputs, const RowBlock& block)
      : op_(op), outputs_(outputs), block_(block), seq_len_(op.seq_len(block.request)) {
    find_visible_keys();
    if (op.exec.any()) part_of_ = partition_keys(op.exec, seq_len_);
  }

  void solve() {
    for (std::int64_t kv_head = 0; kv_head < op_.num_kv_heads(); ++kv_head) {
      keys_ = gather_keys(op_, block_.request, kv_head, positions_);
      values_ = gather_values(op_, block_.request, kv_head, positions_);
      const std::int64_t group = op_.num_queries_per_kv();
      for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        for (std::int64_t i = 0; i < block_.num_rows; ++i) solve_row(i, head);
      }
    }
  }

 private:
  RowPosition row_position(std::int64_t i) const {
    const std::int64_t context_len = op_.context_len(block_.request);
    const std::int64_t row = block_.first_row + i;
    return {block_.request, row, context_len + row, context_len};
  }

  // The base mask is asked once per (row, key). positions_ become the keys that any row of the
  // block sees; visible_[i] the indices into them that row i sees, ascending.
  void find_visible_keys() {
    const BaseMask mask(op_, block_.request);
    visible_.resize(static_cast<std::size_t>(block_.num_rows));
    for (std::int64_t k = 0; k < seq_len_; ++k) {
      const auto index = static_cast<Eigen::Index>(positions_.size());
      bool seen = false;
      for (std::int64_t i = 0; i < block_.num_rows; ++i) {
        if (!mask.sees(row_position(i).q, k)) continue;
        visible_[static_cast<std::size_t>(i)].push_back(index);
        seen = true;
      }
      if (seen) positions_.push_back(k);
    }
  }

  // Score of a key the base mask lets through; -inf when attn_mask or a bias masks it.
  double score(const RowMatrix& query, const RowPosition& at, std::int64_t head,
               Eigen::Index index) const {
    const std::int64_t k = positions_[static_cast<std::size_t>(index)];
    if (!attn_mask_allows(op_, at.request, head, at.row, k)) return -kInf;
    const std::array<double, 3> biases = bias_terms(op_, at, head, k);
    if (any_masks(biases)) return -kInf;
    const double s = op_.scale * dot(query.data(), keys_.row(index).data(), keys_.cols());
    const double cap = op_.logits_soft_cap;
    const double capped = cap != 0.0 ? cap * std::tanh(s / cap) : s;
    return capped + biases[0] + biases[1] + biases[2];
  }

  // One set of keys a part; a single one when nothing is asked of `exec`.
  std::vector<ScoredKeys> scored_keys(std::int64_t i, std::int64_t head) const {
    const RowPosition at = row_position(i);
    const RowMatrix query = gather_query(op_, op_.query_start(at.request) + at.row, head);
    const int num_parts =
        part_of_.empty() ? 1 : 1 + *std::max_element(part_of_.begin(), part_of_.end());
    std::vector<ScoredKeys> parts(static_cast<std::size_t>(num_parts));
    for (const Eigen::Index index : visible_[static_cast<std::size_t>(i)]) {
      const double u = score(query, at, head, index);
      if (u == -kInf) continue;
      const std::int64_t k = positions_[static_cast<std::size_t>(index)];
      const int part = part_of_.empty() ? 0 : part_of_[static_cast<std::size_t>(k)];
      parts[static_cast<std::size_t>(part)].score.push_back(u);
      parts[static_cast<std::size_t>(part)].value_row.push_back(index);
    }
    return parts;
  }

  State row_state(std::int64_t i, std::int64_t head) const {
    const std::vector<ScoredKeys> parts = scored_keys(i, head);
    const Eigen::Index size = op_.head_size_v();
    std::optional<double> sink;
    if (op_.sinks.present()) sink = value_at(op_.sinks, head);
    if (!op_.exec.any()) return attend(parts[0], values_, size, sink, op_.lse_includes_sink);
    State state = attend(parts[0], values_, size, std::nullopt, true);
    for (std::size_t p = 1; p < parts.size(); ++p) {
      state = merge(state, attend(parts[p], values_, size, std::nullopt, true));
    }
    return sink ? add_sink(state, *sink, op_.lse_includes_sink) : state;
  }

  void solve_row(std::int64_t i, std::int64_t head) const {
    const State state = row_state(i, head);
    const std::int64_t token = op_.query_start(block_.request) + block_.first_row + i;
    if (outputs_.lse.present()) store(outputs_.lse, state.lse, head, token);
    for (Eigen::Index d = 0; d < state.out.size(); ++d) {
      if (outputs_.out.present()) store(outputs_.out, state.out[d], token, head, d);
      if (outputs_.out_codes.present()) {
        store(outputs_.out_codes, state.out[d] / value_at(op_.output_scale, 0), token, head, d);
      }
    }
  }

  template <class... Index>
  static void store(const MutableTensorView& view, double value, Index... index) {
    const Overflow overflow = view.dtype == DType::kF64 ? Overflow::kInfinity : Overflow::kSaturate;
    store_code(view.dtype, encode(view.dtype, value, overflow), view.at(index...));
  }

  const AttentionOp& op_;
  const Outputs& outputs_;
  const RowBlock block_;
  const std::int64_t seq_len_;
  std::vector<std::int64_t> positions_;
  std::vector<std::vector<Eigen::Index>> visible_;
  std::vector<int> part_of_;
  RowMatrix keys_;    // [positions, head_size] of the current KV head
  RowMatrix values_;  // [positions, head_size_v]
};

}  // namespace

void attention(const AttentionOp& op, const Outputs& outputs) {
  const std::vector<RowBlock> blocks = row_blocks(op);
  parallel_for(static_cast<std::int64_t>(blocks.size()), [&](std::int64_t i, int) {
    RowBlockSolver(op, outputs, blocks[static_cast<std::size_t>(i)]).solve();
  });
}

}  // namespace attn::reference
