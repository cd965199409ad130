#include "optimized/cpu/latent.h"

#include <fmt/core.h>

namespace attn::cpu {
namespace {

// [num_blocks, block_size, row] with an axis of one head.
TensorView with_one_head(TensorView rows, std::int64_t size) {
  rows.rank = 4;
  rows.shape[2] = 1;
  rows.shape[3] = size;
  rows.stride_bytes[3] = rows.stride_bytes[2];
  rows.stride_bytes[2] = 0;
  return rows;
}

AttentionOp absorbed(const MlaOp& op) {
  AttentionOp attention;
  attention.query = op.query;
  attention.query_start_loc = op.query_start_loc;
  attention.seq_lens = op.seq_lens;
  attention.kv.layout = KvLayout::kPaged;
  attention.kv.key = with_one_head(op.kv_cache, op.kv_lora_rank + op.qk_rope_head_dim);
  attention.kv.value = with_one_head(op.kv_cache, op.kv_lora_rank);
  attention.kv.block_table = op.block_table;
  attention.kv.k_scale = attention.kv.v_scale = op.k_scale;
  attention.scale = op.scale;
  attention.mask.causal = op.causal;
  attention.exec = op.exec;
  return attention;
}

}  // namespace

std::optional<AttentionOp> as_attention(const AttentionProblem& problem) {
  if (const AttentionOp* op = problem.attention()) return *op;
  const auto* latent = std::get_if<MlaOp>(&problem.operation());
  if (latent == nullptr || !latent_reasons(*latent).empty()) return std::nullopt;
  return absorbed(*latent);
}

std::vector<std::string> latent_reasons(const MlaOp& op) {
  std::vector<std::string> reasons;
  if (op.form != MlaForm::kAbsorbed) reasons.emplace_back("mla_form expanded not supported");
  if (op.encoding != KvEncoding::kPlain) {
    reasons.push_back(fmt::format("cache encoding {} not supported", name(op.encoding)));
  }
  return reasons;
}

}  // namespace attn::cpu
