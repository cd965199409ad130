// mla, mla_sparse, and the write of their cache.
#include <fmt/core.h>

#include "attn/error.h"
#include "golden/case_operation.h"
#include "golden/kv_cache_inputs.h"

namespace attn::golden {
namespace {

// kv_cache of latent rows, and how they are stored.
struct LatentCache {
  TensorView rows;  // [num_blocks, block_size, row]
  KvEncoding encoding = KvEncoding::kPlain;
  TensorView k_scale;
};

void expect_paged(const CaseInputs& inputs) {
  if (inputs.attrs().kv_layout.value_or(KvLayout::kPaged) != KvLayout::kPaged) {
    throw Error(fmt::format("case.attrs.kv_layout must be paged or absent for {}",
                            operation_text(inputs.object().op)));
  }
}

LatentCache take_latent_cache(CaseInputs& inputs) {
  const CaseAttributes& attrs = inputs.attrs();
  LatentCache cache;
  cache.rows = inputs.take("kv_cache", 3);
  cache.encoding = encoding_of(attrs.kv_cache_dtype);
  inputs.expect_block_size("kv_cache", cache.rows.shape[1]);

  switch (attrs.kv_cache_dtype) {
    case CacheDType::kAuto:
      cache.k_scale = inputs.take_if_given("k_scale");
      break;
    case CacheDType::kFp8E4M3:
      cache.k_scale = inputs.take_if_given("k_scale");
      inputs.expect_cache_dtype("kv_cache", cache.rows, DType::kF8E4M3FN);
      break;
    case CacheDType::kFp8DsMla:  // the rows hold their scales
      inputs.expect_cache_dtype("kv_cache", cache.rows, DType::kU8);
      break;
    default:
      throw Error(fmt::format("case.attrs.kv_cache_dtype {} does not belong to {}",
                              name(attrs.kv_cache_dtype), operation_text(inputs.object().op)));
  }
  return cache;
}

// A part of the written row: [tokens, size], where an attribute says the size.
TensorView take_row_part(CaseInputs& inputs, const std::string& input, std::string_view attribute,
                         std::int64_t size) {
  const TensorView part = inputs.take(input, 2);
  if (part.shape[1] != size) {
    throw Error(
        fmt::format("case.attrs.{} is {}, but {} is {}", attribute, size, input, to_string(part)));
  }
  return part;
}

MlaOp take_mla(CaseInputs& inputs) {
  const CaseAttributes& attrs = inputs.attrs();
  MlaOp op;
  op.query = inputs.take("query", 3);
  op.query_start_loc = inputs.take("query_start_loc", 1);
  op.seq_lens = inputs.take("seq_lens", 1);
  const LatentCache cache = take_latent_cache(inputs);
  op.kv_cache = cache.rows;
  op.encoding = cache.encoding;
  op.k_scale = cache.k_scale;
  op.block_table = inputs.take("block_table", 2);
  op.scale = attrs.scale.value_or(1.0);
  op.causal = attrs.causal.value_or(true);
  op.form = attrs.mla_form;
  op.kv_lora_rank = attrs.kv_lora_rank;
  op.qk_rope_head_dim = attrs.qk_rope_head_dim;
  return op;
}

}  // namespace

MlaOp mla_operation(CaseInputs& inputs) {
  const std::string context = operation_text(OpKind::kMla);
  inputs.expect_attributes(
      {"kv_layout", "block_size", "kv_cache_dtype", "scale", "causal", "mla_form", "kv_lora_rank",
       "qk_rope_head_dim", "qk_nope_head_dim", "exec"},
      context);
  expect_paged(inputs);
  MlaOp op = take_mla(inputs);
  op.exec = inputs.attrs().exec;
  if (op.form == MlaForm::kExpanded) {
    const std::optional<std::int64_t>& nope = inputs.attrs().qk_nope_head_dim;
    if (!nope) throw Error("case.attrs.qk_nope_head_dim is missing, mla_form expanded needs it");
    op.qk_nope_head_dim = *nope;
    op.w_uk = inputs.take("w_uk", 3);
    op.w_uv = inputs.take("w_uv", 3);
  }
  inputs.expect_all_taken(context);
  return op;
}

MlaSparseOp mla_sparse_operation(CaseInputs& inputs) {
  const std::string context = operation_text(OpKind::kMlaSparse);
  inputs.expect_attributes(
      {"kv_layout", "block_size", "kv_cache_dtype", "scale", "causal", "mla_form", "kv_lora_rank",
       "qk_rope_head_dim", "qk_nope_head_dim", "topk_index_space", "lse_includes_sink"},
      context);
  expect_paged(inputs);
  if (inputs.attrs().mla_form != MlaForm::kAbsorbed) {
    throw Error("case.attrs.mla_form must be absorbed for operation mla_sparse");
  }
  MlaSparseOp op;
  op.mla = take_mla(inputs);
  op.topk_indices = inputs.take("topk_indices", 2);
  op.topk_lens = inputs.take_if_given("topk_lens");
  op.index_space = inputs.attrs().topk_index_space;
  op.sinks = inputs.take_if_given("sinks");
  op.lse_includes_sink = inputs.attrs().lse_includes_sink;
  inputs.expect_all_taken(context);
  return op;
}

MlaCacheWriteOp mla_cache_write_operation(CaseInputs& inputs) {
  const std::string context = operation_text(OpKind::kMlaCacheWrite);
  inputs.expect_attributes(
      {"kv_layout", "block_size", "kv_cache_dtype", "kv_lora_rank", "qk_rope_head_dim"}, context);
  expect_paged(inputs);
  MlaCacheWriteOp op;
  op.kv_c = take_row_part(inputs, "kv_c", "kv_lora_rank", inputs.attrs().kv_lora_rank);
  op.k_pe = take_row_part(inputs, "k_pe", "qk_rope_head_dim", inputs.attrs().qk_rope_head_dim);
  op.slot_mapping = inputs.take("slot_mapping", 1);
  const LatentCache cache = take_latent_cache(inputs);
  op.kv_cache = cache.rows;
  op.encoding = cache.encoding;
  op.k_scale = cache.k_scale;
  inputs.expect_all_taken(context);
  return op;
}

}  // namespace attn::golden
