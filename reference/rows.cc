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

ScoredKeys joined(const std::vector<ScoredKeys>& parts) {
  ScoredKeys all;
  for (const ScoredKeys& part : parts) {
    all.score.insert(all.score.end(), part.score.begin(), part.score.end());
    all.value_row.insert(all.value_row.end(), part.value_row.begin(), part.value_row.end());
  }
  return all;
}

class RowBlockSolver {
 public:
  RowBlockSolver(const RowProblem& problem, const KeyValueSource& source, const TakeRow& take_row,
                 const TakeSums& take_sums, const RowBlock& block)
      : problem_(problem),
        source_(source),
        take_row_(take_row),
        take_sums_(take_sums),
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
      if (take_sums_) {
        key_sizes_ =
            with_row_sizes(source_.key_magnitudes(block_.request, kv_head, positions_, keys_));
        value_sizes_ =
            with_row_sizes(source_.value_magnitudes(block_.request, kv_head, positions_, values_));
      }
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

  std::optional<double> sink_of(std::int64_t head) const {
    if (!problem_.sinks.present()) return std::nullopt;
    return value_at(problem_.sinks, head);
  }

  State row_state(const std::vector<ScoredKeys>& parts, std::int64_t head) const {
    const Eigen::Index size = problem_.head_size_v;
    const std::optional<double> sink = sink_of(head);
    if (!problem_.exec.any())
      return attend(parts[0], values_, size, sink, problem_.lse_includes_sink);
    State state = attend(parts[0], values_, size, std::nullopt, true);
    for (std::size_t p = 1; p < parts.size(); ++p) {
      state = merge(state, attend(parts[p], values_, size, std::nullopt, true));
    }
    return sink ? add_sink(state, *sink, problem_.lse_includes_sink) : state;
  }

  // How much of each score comes from biases; empty when there are none.
  std::vector<double> bias_sizes(const RowPosition& at, std::int64_t head,
                                 const ScoredKeys& keys) const {
    std::vector<double> sizes;
    if (!problem_.bias.any()) return sizes;
    for (const Eigen::Index index : keys.value_row) {
      const std::array<double, 3> terms =
          bias_terms(problem_.bias, at, head, positions_[static_cast<std::size_t>(index)]);
      sizes.push_back(std::abs(terms[0]) + std::abs(terms[1]) + std::abs(terms[2]));
    }
    return sizes;
  }

  RowSums sums_of(std::int64_t i, std::int64_t head, const std::vector<ScoredKeys>& parts,
                  const State& state) const {
    const ScoredKeys keys = joined(parts);
    const RowMatrix query = query_row(token_of(i), head);
    const std::vector<double> biases = bias_sizes(row_position(i), head, keys);
    return row_sums(
        {keys, biases, positions_, query, key_sizes_, value_sizes_, problem_.scale, sink_of(head)},
        state);
  }

  void solve_row(std::int64_t i, std::int64_t head) const {
    const std::vector<ScoredKeys> parts = scored_keys(i, head);
    const State state = row_state(parts, head);
    take_row_(token_of(i), head, state);
    if (take_sums_) take_sums_(token_of(i), head, sums_of(i, head, parts, state));
  }

  const RowProblem& problem_;
  const KeyValueSource& source_;
  const TakeRow& take_row_;
  const TakeSums& take_sums_;
  const RowBlock block_;
  const std::int64_t seq_len_;
  std::vector<std::int64_t> positions_;
  std::vector<std::vector<Eigen::Index>> visible_;
  std::vector<int> part_of_;
  RowMatrix keys_;                      // [positions, head_size] of the current KV head
  RowMatrix values_;                    // [positions, head_size_v]
  Magnitudes key_sizes_, value_sizes_;  // with take_sums_
};

}  // namespace

void solve_rows(const RowProblem& problem, const KeyValueSource& source, const TakeRow& take_row,
                const TakeSums& take_sums) {
  const std::vector<RowBlock> blocks = row_blocks(problem);
  parallel_for(static_cast<std::int64_t>(blocks.size()), [&](std::int64_t i, int) {
    const RowBlock& block = blocks[static_cast<std::size_t>(i)];
    RowBlockSolver(problem, source, take_row, take_sums, block).solve();
  });
}

TakeRow to_state_of(const Outputs& outputs) {
  return [&outputs](std::int64_t token, std::int64_t head, const State& state) {
    store_state(outputs, token, head, state);
  };
}

TakeSums to_sums_of(const Outputs& outputs) {
  if (!wants_sums(outputs)) return {};
  return [&outputs](std::int64_t token, std::int64_t head, const RowSums& sums) {
    store_sums(outputs, sums, token, head);
  };
}

}  // namespace attn::reference
