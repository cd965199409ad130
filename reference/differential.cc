#include "reference/differential.h"

#include <cmath>
#include <vector>

#include "reference/attention.h"
#include "reference/store.h"

namespace attn::reference {
namespace {

// Heads `side`, side + 2, side + 4, ... of a tensor with one entry a head on `axis`, or one for
// all.
TensorView every_second_head(const TensorView& view, int axis, std::int64_t side) {
  if (!view.present() || view.shape[axis] == 1) return view;
  TensorView half = slice(view, axis, side, view.shape[axis] - side);
  half.shape[axis] = view.shape[axis] / 2;
  half.stride_bytes[axis] *= 2;
  return half;
}

class PairSource final : public KeyValueSource {
 public:
  PairSource(const AttentionOp& op, std::int64_t side) : op_(op), side_(side) {}

  RowMatrix keys(std::int64_t request, std::int64_t pair,
                 std::span<const std::int64_t> positions) const override {
    return gather_keys(op_, request, 2 * pair + side_, positions);
  }
  RowMatrix values(std::int64_t request, std::int64_t pair,
                   std::span<const std::int64_t> positions) const override {
    const std::int64_t size = op_.head_size_v();
    RowMatrix both = zero_rows(positions.size(), 2 * size);
    for (std::int64_t i = 0; i < 2; ++i) {
      both.middleCols(i * size, size) =
          gather_values(op_, request, 2 * pair + i, positions).leftCols(size);
    }
    return both;
  }

 private:
  const AttentionOp& op_;
  std::int64_t side_;
};

// One of the two softmaxes, with half as many heads.
RowProblem side_problem(const AttentionOp& op, std::int64_t side) {
  RowProblem problem = row_problem(op);
  problem.query = every_second_head(op.query, 1, side);
  problem.q_scale = every_second_head(op.q_scale, 0, side);
  problem.num_kv_heads = op.num_kv_heads() / 2;
  problem.head_size_v = 2 * op.head_size_v();
  problem.mask.attn_mask = every_second_head(op.mask.attn_mask, 1, side);
  problem.bias.attn_bias = every_second_head(op.bias.attn_bias, 1, side);
  problem.bias.alibi_slopes = every_second_head(op.bias.alibi_slopes, 0, side);
  return problem;
}

Eigen::VectorXd normalised(const DifferentialOp& op, const Eigen::VectorXd& y) {
  const auto size = static_cast<double>(y.size());
  const double root = std::sqrt(y.squaredNorm() / size + op.eps);
  Eigen::VectorXd result(y.size());
  for (Eigen::Index d = 0; d < y.size(); ++d) {
    result[d] = value_at(op.norm_weight, d) * y[d] / root;
  }
  return result;
}

}  // namespace

void differential(const DifferentialOp& op, const Outputs& outputs) {
  const AttentionOp& attention = op.attention;
  const std::int64_t pairs = attention.num_heads() / 2;
  const auto rows = static_cast<std::size_t>(attention.num_tokens() * pairs);
  std::vector<Eigen::VectorXd> sides[2];
  for (std::int64_t side = 0; side < 2; ++side) {
    sides[side].resize(rows);
    TakeSums take_sums;
    if (wants_sums(outputs)) {
      take_sums = [&](std::int64_t token, std::int64_t pair, const RowSums& sums) {
        store_sums(outputs, sums, side, token, pair);
      };
    }
    solve_rows(
        side_problem(attention, side), PairSource(attention, side),
        [&](std::int64_t token, std::int64_t pair, const State& state) {
          sides[side][static_cast<std::size_t>(token * pairs + pair)] = state.out;
          store_row(outputs.cond_o, state.out, side, token, pair);
        },
        take_sums);
  }
  for (std::size_t row = 0; row < rows; ++row) {
    Eigen::VectorXd y = sides[0][row] - op.lambda * sides[1][row];
    if (op.norm_weight.present()) y = normalised(op, y);
    y *= 1.0 - op.lambda_init;
    const auto index = static_cast<std::int64_t>(row);
    store_row(outputs.out, y, index / pairs, index % pairs);
  }
}

}  // namespace attn::reference
