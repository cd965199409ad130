#include "reference/mla.h"

#include "reference/latent.h"
#include "reference/rows.h"
#include "reference/store.h"

namespace attn::reference {
namespace {

class AbsorbedSource final : public KeyValueSource {
 public:
  explicit AbsorbedSource(const MlaOp& op) : op_(op) {}

  RowMatrix keys(std::int64_t request, std::int64_t,
                 std::span<const std::int64_t> positions) const override {
    return gather_latent(op_, latent_slots(op_, request, positions));
  }
  RowMatrix values(std::int64_t request, std::int64_t,
                   std::span<const std::int64_t> positions) const override {
    return first_columns(gather_latent(op_, latent_slots(op_, request, positions)),
                         op_.kv_lora_rank);
  }

 private:
  const MlaOp& op_;
};

// One KV head for every query head: k = latent * w_uk ‖ rope, v = latent * w_uv.
class ExpandedSource final : public KeyValueSource {
 public:
  explicit ExpandedSource(const MlaOp& op) : op_(op) {}

  RowMatrix keys(std::int64_t request, std::int64_t head,
                 std::span<const std::int64_t> positions) const override {
    const RowMatrix rows = gather_latent(op_, latent_slots(op_, request, positions));
    const std::int64_t nope = op_.qk_nope_head_dim;
    RowMatrix keys = zero_rows(positions.size(), nope + op_.qk_rope_head_dim);
    keys.leftCols(nope) = project(rows, op_.w_uk, head).leftCols(nope);
    keys.middleCols(nope, op_.qk_rope_head_dim) =
        rows.middleCols(op_.kv_lora_rank, op_.qk_rope_head_dim);
    return keys;
  }
  RowMatrix values(std::int64_t request, std::int64_t head,
                   std::span<const std::int64_t> positions) const override {
    return project(gather_latent(op_, latent_slots(op_, request, positions)), op_.w_uv, head);
  }

 private:
  // latent [rows, L] times weights [L, head, columns].
  RowMatrix project(const RowMatrix& rows, const TensorView& weights, std::int64_t head) const {
    const RowMatrix latent = first_columns(rows, op_.kv_lora_rank);
    const std::int64_t columns = weights.shape[2];
    RowMatrix product = zero_rows(static_cast<std::size_t>(rows.rows()), columns);
    RowMatrix column = zero_rows(1, op_.kv_lora_rank);
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t l = 0; l < op_.kv_lora_rank; ++l) {
        column(0, l) = value_at(weights, l, head, c);
      }
      for (Eigen::Index i = 0; i < rows.rows(); ++i) {
        product(i, c) = dot(latent.row(i).data(), column.data(), latent.cols());
      }
    }
    return product;
  }

  const MlaOp& op_;
};

RowProblem row_problem(const MlaOp& op) {
  RowProblem problem;
  problem.query = op.query;
  problem.query_start_loc = op.query_start_loc;
  problem.seq_lens = op.seq_lens;
  problem.scale = op.scale;
  problem.mask.causal = op.causal;
  problem.exec = op.exec;
  return problem;
}

}  // namespace

void mla(const MlaOp& op, const Outputs& outputs) {
  RowProblem problem = row_problem(op);
  const TakeRow take_row = [&](std::int64_t token, std::int64_t head, const State& state) {
    store_state(outputs, token, head, state);
  };
  if (op.form == MlaForm::kAbsorbed) {
    problem.num_kv_heads = 1;
    problem.head_size_v = op.kv_lora_rank;
    solve_rows(problem, AbsorbedSource(op), take_row);
  } else {
    problem.num_kv_heads = op.query.shape[1];
    problem.head_size_v = op.w_uv.shape[2];
    solve_rows(problem, ExpandedSource(op), take_row);
  }
}

}  // namespace attn::reference
