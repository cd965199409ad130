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

// latent [rows, L] times weights [L, head, columns]; with `sizes` of their absolute values.
RowMatrix project(const RowMatrix& latent, const TensorView& weights, std::int64_t head,
                  bool sizes = false) {
  const std::int64_t rank = weights.shape[0];
  const RowMatrix rows = sizes ? RowMatrix(latent.cwiseAbs()) : latent;
  RowMatrix product = zero_rows(static_cast<std::size_t>(rows.rows()), weights.shape[2]);
  RowMatrix column = zero_rows(1, rank);
  for (std::int64_t c = 0; c < weights.shape[2]; ++c) {
    for (std::int64_t l = 0; l < rank; ++l) column(0, l) = value_at(weights, l, head, c);
    if (sizes) column = column.cwiseAbs().eval();
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      product(i, c) = dot(rows.row(i).data(), column.data(), rows.cols());
    }
  }
  return product;
}

// One KV head for every query head: k = latent * w_uk ‖ rope, v = latent * w_uv.
class ExpandedSource final : public KeyValueSource {
 public:
  explicit ExpandedSource(const MlaOp& op) : op_(op) {}

  RowMatrix keys(std::int64_t request, std::int64_t head,
                 std::span<const std::int64_t> positions) const override {
    const RowMatrix rows = gather_latent(op_, latent_slots(op_, request, positions));
    return keys_of(project(latent_of(rows), op_.w_uk, head), rows);
  }
  RowMatrix values(std::int64_t request, std::int64_t head,
                   std::span<const std::int64_t> positions) const override {
    const RowMatrix rows = gather_latent(op_, latent_slots(op_, request, positions));
    return project(latent_of(rows), op_.w_uv, head);
  }

  RowMatrix key_magnitudes(std::int64_t request, std::int64_t head,
                           std::span<const std::int64_t> positions,
                           const RowMatrix&) const override {
    const RowMatrix rows = gather_latent(op_, latent_slots(op_, request, positions));
    return keys_of(project(latent_of(rows), op_.w_uk, head, true), rows.cwiseAbs());
  }
  RowMatrix value_magnitudes(std::int64_t request, std::int64_t head,
                             std::span<const std::int64_t> positions,
                             const RowMatrix&) const override {
    const RowMatrix rows = gather_latent(op_, latent_slots(op_, request, positions));
    return project(latent_of(rows), op_.w_uv, head, true);
  }

 private:
  RowMatrix latent_of(const RowMatrix& rows) const { return first_columns(rows, op_.kv_lora_rank); }

  // nope ‖ the rope part of `rows`.
  RowMatrix keys_of(const RowMatrix& nope, const RowMatrix& rows) const {
    const std::int64_t size = op_.qk_nope_head_dim;
    RowMatrix keys = zero_rows(static_cast<std::size_t>(rows.rows()), size + op_.qk_rope_head_dim);
    keys.leftCols(size) = nope.leftCols(size);
    keys.middleCols(size, op_.qk_rope_head_dim) =
        rows.middleCols(op_.kv_lora_rank, op_.qk_rope_head_dim);
    return keys;
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
  if (op.form == MlaForm::kAbsorbed) {
    problem.num_kv_heads = 1;
    problem.head_size_v = op.kv_lora_rank;
    solve_rows(problem, AbsorbedSource(op), to_state_of(outputs), to_sums_of(outputs));
  } else {
    problem.num_kv_heads = op.query.shape[1];
    problem.head_size_v = op.w_uv.shape[2];
    solve_rows(problem, ExpandedSource(op), to_state_of(outputs), to_sums_of(outputs));
  }
}

}  // namespace attn::reference
