#include "reference/rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "attn/parallel.h"
#include "reference/bias.h"
#include "reference/mask.h"
#include "reference/partition.h"

namespace attn::reference {
namespace {

// Rows that share one gathering of keys.
constexpr std::int64_t kRowBlock = 64;

struct RowBlock {
  std::int64_t request = 0;
  std::int64_t first_row = 0;  // local
  std::int64_t num_rows = 0;
};

std::vector<RowBlock> row_blocks(const RowProblem& problem) {
  std::vector<RowBlock> blocks;
  for (std::int64_t r = 0; r < problem.seq_lens.shape[0]; ++r) {
    for (std::int64_t row = 0; row < problem.query_len(r); row += kRowBlock) {
      blocks.push_back({r, row, std::min(kRowBlock, problem.query_len(r) - row)});
    }
  }
  return blocks;
}

class RowBlockSolver {
 public:
  RowBlockSolver(const RowProblem& problem, const KeyValueSource& source, const TakeRow& take_row,
                 const RowBlock& block)
      : problem_(problem),
        source_(source),
        take_row_(take_row),
        block_(block),
        seq_len_(int_at(problem.seq_lens, block.request)) {
    find_visible_keys();
    if (problem.exec.any()) part_of_ = partition_keys(problem.exec, seq_len_);
  }

  void solve() {
    const std::int64_t group = problem_.num_heads() / problem_.num_kv_heads;
    for (std::int64_t kv_head = 0; kv_head < problem_.num_kv_heads; ++kv_head) {
      keys_ = source_.keys(block_.request, kv_head, positions_);
      values_ = source_.values(block_.request, kv_head, positions_);
      for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        for (std::int64_t i = 0; i < block_.num_rows; ++i) solve_row(i, head);
      }
    }
  }

 private:
  RowPosition row_position(std::int64_t i) const {
    const std::int64_t context_len = seq_len_ - problem_.query_len(block_.request);
    const std::int64_t row = block_.first_row + i;
    return {block_.request, row, context_len + row, context_len};
  }

  std::int64_t token_of(std::int64_t i) const {
    return int_at(problem_.query_start_loc, block_.request) + block_.first_row + i;
  }

  RowMatrix query_row(std::int64_t token, std::int64_t head) const {
    return gather_query(problem_.query, problem_.q_scale, token, head,
                        head / (problem_.num_heads() / problem_.num_kv_heads));
  }

  // The base mask is asked once per (row, key). positions_ become the keys that any row of the
  // block sees; visible_[i] the indices into them that row i sees, ascending.
  void find_visible_keys() {
    const BaseMask mask(problem_.mask, block_.request);
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
    if (!attn_mask_allows(problem_.mask, at.request, head, at.row, k)) return -kInf;
    const std::array<double, 3> biases = bias_terms(problem_.bias, at, head, k);
    if (any_masks(biases)) return -kInf;
    const double s = problem_.scale * dot(query.data(), keys_.row(index).data(), keys_.cols());
    const double cap = problem_.logits_soft_cap;
    const double capped = cap != 0.0 ? cap * std::tanh(s / cap) : s;
    return capped + biases[0] + biases[1] + biases[2];
  }

  // One set of keys a part; a single one when nothing is asked of `exec`.
  std::vector<ScoredKeys> scored_keys(std::int64_t i, std::int64_t head) const {
    const RowPosition at = row_position(i);
    const RowMatrix query = query_row(token_of(i), head);
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
    const Eigen::Index size = problem_.head_size_v;
    std::optional<double> sink;
    if (problem_.sinks.present()) sink = value_at(problem_.sinks, head);
    if (!problem_.exec.any())
      return attend(parts[0], values_, size, sink, problem_.lse_includes_sink);
    State state = attend(parts[0], values_, size, std::nullopt, true);
    for (std::size_t p = 1; p < parts.size(); ++p) {
      state = merge(state, attend(parts[p], values_, size, std::nullopt, true));
    }
    return sink ? add_sink(state, *sink, problem_.lse_includes_sink) : state;
  }

  void solve_row(std::int64_t i, std::int64_t head) const {
    take_row_(token_of(i), head, row_state(i, head));
  }

  const RowProblem& problem_;
  const KeyValueSource& source_;
  const TakeRow& take_row_;
  const RowBlock block_;
  const std::int64_t seq_len_;
  std::vector<std::int64_t> positions_;
  std::vector<std::vector<Eigen::Index>> visible_;
  std::vector<int> part_of_;
  RowMatrix keys_;    // [positions, head_size] of the current KV head
  RowMatrix values_;  // [positions, head_size_v]
};

}  // namespace

void solve_rows(const RowProblem& problem, const KeyValueSource& source, const TakeRow& take_row) {
  const std::vector<RowBlock> blocks = row_blocks(problem);
  parallel_for(static_cast<std::int64_t>(blocks.size()), [&](std::int64_t i, int) {
    RowBlockSolver(problem, source, take_row, blocks[static_cast<std::size_t>(i)]).solve();
  });
}

}  // namespace attn::reference
