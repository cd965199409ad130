#include "reference/attention.h"

#include "reference/gather.h"
#include "reference/rows.h"
#include "reference/store.h"

namespace attn::reference {
namespace {

class CacheSource final : public KeyValueSource {
 public:
  explicit CacheSource(const AttentionOp& op) : op_(op) {}

  RowMatrix keys(std::int64_t request, std::int64_t kv_head,
                 std::span<const std::int64_t> positions) const override {
    return gather_keys(op_, request, kv_head, positions);
  }
  RowMatrix values(std::int64_t request, std::int64_t kv_head,
                   std::span<const std::int64_t> positions) const override {
    return gather_values(op_, request, kv_head, positions);
  }

 private:
  const AttentionOp& op_;
};

void store_codes(const AttentionOp& op, const Outputs& outputs, std::int64_t token,
                 std::int64_t head, const State& state) {
  const double scale = value_at(op.output_scale, 0);
  for (Eigen::Index d = 0; d < state.out.size(); ++d) {
    store(outputs.out_codes, state.out[d] / scale, token, head, d);
  }
}

}  // namespace

RowProblem row_problem(const AttentionOp& op) {
  RowProblem problem;
  problem.query = op.query;
  problem.q_scale = op.q_scale;
  problem.query_start_loc = op.query_start_loc;
  problem.seq_lens = op.seq_lens;
  problem.num_kv_heads = op.num_kv_heads();
  problem.head_size_v = op.head_size_v();
  problem.scale = op.scale;
  problem.logits_soft_cap = op.logits_soft_cap;
  problem.mask = op.mask;
  problem.bias = op.bias;
  problem.sinks = op.sinks;
  problem.lse_includes_sink = op.lse_includes_sink;
  problem.exec = op.exec;
  return problem;
}

void attention(const AttentionOp& op, const Outputs& outputs) {
  solve_rows(
      row_problem(op), CacheSource(op),
      [&](std::int64_t token, std::int64_t head, const State& state) {
        store_state(outputs, token, head, state);
        if (outputs.out_codes.present()) store_codes(op, outputs, token, head, state);
      },
      to_sums_of(outputs));
}

}  // namespace attn::reference
