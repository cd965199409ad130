// mla, mla_sparse, and the write of their cache.
#include "core/hex_float.h"
#include "golden/case_draft.h"
#include "golden/dense_copy.h"

namespace attn::golden {
namespace {

// Of the formats below 16 bits, latent caches have a name for e4m3fn only; the others are auto.
std::string latent_dtype_of(const TensorView& cache, KvEncoding encoding) {
  const std::string dtype = cache_dtype_of(encoding, cache, cache);
  return dtype == "fp8_e5m2" || dtype == "fp8_e4m3fnuz" ? "auto" : dtype;
}

void draft_latent_cache(const TensorView& cache, KvEncoding encoding, const TensorView& k_scale,
                        CaseDraft& draft) {
  draft.attrs["block_size"] = axis_or_zero(cache, 1);
  draft.attrs["kv_cache_dtype"] = latent_dtype_of(cache, encoding);
  draft.input("kv_cache", cache);
  draft.input("k_scale", k_scale);
}

}  // namespace

void draft(const MlaOp& op, CaseDraft& draft) {
  const bool expanded = op.form == MlaForm::kExpanded;
  draft.axis("num_reqs", axis_or_zero(op.seq_lens, 0));
  draft.axis("num_tokens", last_start(op.query_start_loc, axis_or_zero(op.query, 0)));
  draft.axis("num_heads", axis_or_zero(op.query, 1));
  draft.axis("num_kv_heads", 1);
  draft.axis("head_size", axis_or_zero(op.query, 2));
  draft.axis("head_size_v", expanded ? axis_or_zero(op.w_uv, 2) : op.kv_lora_rank);
  draft.attrs["kv_layout"] = "paged";
  draft.attrs["scale"] = to_hex_float(op.scale);
  draft.attrs["causal"] = op.causal;
  draft.attrs["mla_form"] = expanded ? "expanded" : "absorbed";
  draft.attrs["kv_lora_rank"] = op.kv_lora_rank;
  draft.attrs["qk_rope_head_dim"] = op.qk_rope_head_dim;
  if (expanded) draft.attrs["qk_nope_head_dim"] = op.qk_nope_head_dim;
  draft_exec(op.exec, draft);
  draft_latent_cache(op.kv_cache, op.encoding, op.k_scale, draft);
  draft.input("query", op.query);
  draft.input("query_start_loc", op.query_start_loc);
  draft.input("seq_lens", op.seq_lens);
  draft.input("block_table", op.block_table);
  draft.input("w_uk", op.w_uk);
  draft.input("w_uv", op.w_uv);
}

void draft(const MlaSparseOp& op, CaseDraft& draft) {
  golden::draft(op.mla, draft);
  draft.attrs["topk_index_space"] = op.index_space == TopkIndexSpace::kRequest ? "request" : "slot";
  if (op.sinks.present() || !op.lse_includes_sink) {
    draft.attrs["lse_includes_sink"] = op.lse_includes_sink;
  }
  draft.input("topk_indices", op.topk_indices);
  draft.input("topk_lens", op.topk_lens);
  draft.input("sinks", op.sinks);
}

void draft(const MlaCacheWriteOp& op, CaseDraft& draft) {
  draft.axis("num_tokens", axis_or_zero(op.slot_mapping, 0));
  draft.axis("num_kv_heads", 1);
  draft.axis("num_blocks", axis_or_zero(op.kv_cache, 0));
  draft.attrs["kv_lora_rank"] = axis_or_zero(op.kv_c, 1);
  draft.attrs["qk_rope_head_dim"] = axis_or_zero(op.k_pe, 1);
  draft_latent_cache(op.kv_cache, op.encoding, op.k_scale, draft);
  draft.input("kv_c", op.kv_c);
  draft.input("k_pe", op.k_pe);
  draft.input("slot_mapping", op.slot_mapping);
}

}  // namespace attn::golden
