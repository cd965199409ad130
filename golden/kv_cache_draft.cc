// Caches of K and V in the layouts of case files, and the write into them.
#include <fmt/core.h>

#include "attn/error.h"
#include "golden/case_draft.h"
#include "golden/dense_copy.h"

namespace attn::golden {
namespace {

// Logical order is [num_blocks, block_size, num_kv_heads, head_size].
bool lies_heads_first(const TensorView& blocks) {
  return blocks.rank == 4 && blocks.stride_bytes[2] > blocks.stride_bytes[1];
}

TensorView in_file_order(const TensorView& blocks, bool heads_first) {
  return heads_first && blocks.rank == 4 ? swap_axes(blocks, 1, 2) : blocks;
}

void draft_layout(const KvCacheView& kv, CaseDraft& draft) {
  draft.heads_first = lies_heads_first(kv.key);
  draft.attrs["kv_cache_layout"] = draft.heads_first ? "HND" : "NHD";
  draft.attrs["block_size"] = axis_or_zero(kv.key, 1);
}

void draft_scales(const KvCacheView& kv, CaseDraft& draft) {
  draft.input("k_scale", kv.k_scale);
  draft.input("v_scale", kv.v_scale);
  draft.input("k_scale_cache", kv.k_scale_cache);
  draft.input("v_scale_cache", kv.v_scale_cache);
  draft.input("k_block_scale", kv.k_block_scale);
  draft.input("v_block_scale", kv.v_block_scale);
  draft.input("k_global_scale", kv.k_global_scale);
  draft.input("v_global_scale", kv.v_global_scale);
}

void draft_apart(const KvCacheView& kv, CaseDraft& draft) {
  draft.input("key_cache", in_file_order(kv.key, draft.heads_first));
  draft.input("value_cache", in_file_order(kv.value, draft.heads_first));
}

void draft_packed(const KvCacheView& kv, CaseDraft& draft) {
  draft.inputs.insert_or_assign("kv_cache",
                                dense_rows("kv_cache", in_file_order(kv.key, draft.heads_first),
                                           in_file_order(kv.value, draft.heads_first)));
}

std::string plain_dtype(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3FN:
      return "fp8_e4m3";
    case DType::kF8E5M2:
      return "fp8_e5m2";
    case DType::kF8E4M3FNUZ:
      return "fp8_e4m3fnuz";
    default:
      return "auto";
  }
}

}  // namespace

std::string cache_dtype_of(KvEncoding encoding, const TensorView& key, const TensorView& value) {
  const bool same = key.dtype == value.dtype;
  switch (encoding) {
    case KvEncoding::kPlain:
      return same ? plain_dtype(key.dtype) : "auto";
    case KvEncoding::kPerTokenHead:
      if (same && key.dtype == DType::kI8) return "int8_per_token_head";
      if (same && key.dtype == DType::kF8E4M3FN) return "fp8_per_token_head";
      break;
    case KvEncoding::kNvfp4:
      return "nvfp4";
    case KvEncoding::kFp8DsMla:
      return "fp8_ds_mla";
  }
  throw Error(fmt::format("no kv_cache_dtype says {} of {} and {}", name(encoding), to_string(key),
                          to_string(value)));
}

void draft_kv(const KvCacheView& kv, CaseDraft& draft) {
  draft.attrs["kv_layout"] = name(kv.layout);
  const std::string dtype = cache_dtype_of(kv.encoding, kv.key, kv.value);
  if (dtype != "auto") draft.attrs["kv_cache_dtype"] = dtype;
  if (kv.paged()) draft_layout(kv, draft);
  switch (kv.layout) {
    case KvLayout::kVarlen:
      draft.input("key", kv.key);
      draft.input("value", kv.value);
      break;
    case KvLayout::kPaged:
      draft_apart(kv, draft);
      break;
    case KvLayout::kPacked:
      draft_packed(kv, draft);
      break;
  }
  draft.input("block_table", kv.block_table);
  draft.input("kv_start_loc", kv.kv_start_loc);
  draft_scales(kv, draft);
}

void draft(const CacheWriteOp& op, CaseDraft& draft) {
  const KvCacheView& cache = op.cache;
  draft.axis("num_tokens", axis_or_zero(op.slot_mapping, 0));
  draft.axis("num_kv_heads", axis_or_zero(cache.key, 2));
  draft.axis("head_size", axis_or_zero(cache.key, 3) * elements_per_unit(cache.key.dtype));
  draft.axis("head_size_v", axis_or_zero(cache.value, 3) * elements_per_unit(cache.value.dtype));
  draft.axis("num_blocks", axis_or_zero(cache.key, 0));
  draft.attrs["kv_cache_dtype"] = cache_dtype_of(cache.encoding, cache.key, cache.value);
  draft_layout(cache, draft);
  draft_apart(cache, draft);
  draft_scales(cache, draft);
  draft.input("block_table", cache.block_table);
  draft.input("key", op.key);
  draft.input("value", op.value);
  draft.input("slot_mapping", op.slot_mapping);
}

}  // namespace attn::golden
