#include "property_tests/latent_as_attention.h"

#include <vector>

namespace attn::property_tests {

AttentionOp attention_over_latents(const MlaOp& op, TensorStore& memory) {
  const std::int64_t size = op.kv_lora_rank + op.qk_rope_head_dim;
  const double scale = op.k_scale.present() ? value_at(op.k_scale, 0) : 1.0;
  std::vector<double> starts = {0.0};
  std::vector<double> rows;
  for (std::int64_t r = 0; r < op.seq_lens.shape[0]; ++r) {
    const std::int64_t seq_len = int_at(op.seq_lens, r);
    starts.push_back(starts.back() + static_cast<double>(seq_len));
    for (std::int64_t k = 0; k < seq_len; ++k) {
      const std::int64_t block_size = op.kv_cache.shape[1];
      const std::int64_t block = int_at(op.block_table, r, k / block_size);
      for (std::int64_t d = 0; d < size; ++d) {
        rows.push_back(value_at(op.kv_cache, block, k % block_size, d) * scale);
      }
    }
  }
  AttentionOp attention;
  attention.query = op.query;
  attention.query_start_loc = op.query_start_loc;
  attention.seq_lens = op.seq_lens;
  attention.scale = op.scale;
  attention.mask.causal = op.causal;
  attention.kv.kv_start_loc =
      memory.keep(HostTensor(DType::kI32, {static_cast<std::int64_t>(starts.size())}, starts));
  attention.kv.key = memory.keep(
      HostTensor(DType::kF64, {static_cast<std::int64_t>(starts.back()), 1, size}, rows));
  attention.kv.value = slice(attention.kv.key, 2, 0, op.kv_lora_rank);
  return attention;
}

}  // namespace attn::property_tests
