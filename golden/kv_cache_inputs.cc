#include "golden/kv_cache_inputs.h"

#include <fmt/core.h>

#include <optional>

#include "attn/error.h"

namespace attn::golden {
namespace {

std::int64_t declared_axis(const CaseInputs& inputs, const std::string& axis) {
  const auto found = inputs.object().axes.find(axis);
  if (found == inputs.object().axes.end()) {
    throw Error(fmt::format("case.axes.{} is missing", axis));
  }
  return found->second;
}

// Type of the stored codes; auto takes any, and fp8_ds_mla is no cache of K and V.
std::optional<DType> stored_type(CacheDType type) {
  switch (type) {
    case CacheDType::kFp8E4M3:
    case CacheDType::kFp8PerTokenHead:
      return DType::kF8E4M3FN;
    case CacheDType::kFp8E5M2:
      return DType::kF8E5M2;
    case CacheDType::kFp8E4M3Fnuz:
      return DType::kF8E4M3FNUZ;
    case CacheDType::kInt8PerTokenHead:
      return DType::kI8;
    case CacheDType::kNvfp4:
      return DType::kF4E2M1;
    case CacheDType::kFp8DsMla:
    case CacheDType::kAuto:
      break;
  }
  return std::nullopt;
}

// A tensor of K, V or both in one of the cache layouts, in logical order [num_blocks, block_size,
// num_kv_heads, head_size].
TensorView take_blocks(CaseInputs& inputs, const std::string& input) {
  const TensorView stored = inputs.take(input, 4);
  const TensorView blocks = inputs.attrs().heads_first ? swap_axes(stored, 1, 2) : stored;
  inputs.expect_block_size(input, blocks.shape[1]);
  return blocks;
}

void take_packed(CaseInputs& inputs, KvCacheView& kv) {
  if (inputs.attrs().kv_cache_dtype == CacheDType::kNvfp4) {
    throw Error("case.attrs.kv_cache_dtype nvfp4 is not allowed with kv_layout paged_packed");
  }
  const TensorView blocks = take_blocks(inputs, "kv_cache");
  const std::int64_t head_size = declared_axis(inputs, "head_size");
  const std::int64_t head_size_v = declared_axis(inputs, "head_size_v");
  if (blocks.shape[3] != head_size + head_size_v) {
    throw Error(fmt::format("kv_cache is {}, but head_size {} and head_size_v {} make rows of {}",
                            to_string(blocks), head_size, head_size_v, head_size + head_size_v));
  }
  kv.key = slice(blocks, 3, 0, head_size);
  kv.value = slice(blocks, 3, head_size, head_size_v);
}

void take_scales(CaseInputs& inputs, KvCacheView& kv) {
  kv.k_scale = inputs.take_if_given("k_scale");
  kv.v_scale = inputs.take_if_given("v_scale");
  kv.k_scale_cache = inputs.take_if_given("k_scale_cache");
  kv.v_scale_cache = inputs.take_if_given("v_scale_cache");
  kv.k_block_scale = inputs.take_if_given("k_block_scale");
  kv.v_block_scale = inputs.take_if_given("v_block_scale");
  kv.k_global_scale = inputs.take_if_given("k_global_scale");
  kv.v_global_scale = inputs.take_if_given("v_global_scale");
}

void expect_stored_types(const CaseInputs& inputs, const KvCacheView& kv) {
  const std::optional<DType> type = stored_type(inputs.attrs().kv_cache_dtype);
  if (!type) return;
  if (kv.layout == KvLayout::kPacked) {
    inputs.expect_cache_dtype("kv_cache", kv.key, *type);
  } else {
    inputs.expect_cache_dtype(kv.paged() ? "key_cache" : "key", kv.key, *type);
    inputs.expect_cache_dtype(kv.paged() ? "value_cache" : "value", kv.value, *type);
  }
}

}  // namespace

KvEncoding encoding_of(CacheDType type) {
  switch (type) {
    case CacheDType::kInt8PerTokenHead:
    case CacheDType::kFp8PerTokenHead:
      return KvEncoding::kPerTokenHead;
    case CacheDType::kNvfp4:
      return KvEncoding::kNvfp4;
    case CacheDType::kFp8DsMla:
      return KvEncoding::kFp8DsMla;
    default:
      return KvEncoding::kPlain;
  }
}

KvCacheView take_kv(CaseInputs& inputs) {
  KvCacheView kv;
  kv.layout = inputs.attrs().kv_layout.value_or(KvLayout::kVarlen);
  kv.encoding = encoding_of(inputs.attrs().kv_cache_dtype);
  switch (kv.layout) {
    case KvLayout::kVarlen:
      kv.key = inputs.take("key", 3);
      kv.value = inputs.take("value", 3);
      kv.kv_start_loc = inputs.take("kv_start_loc", 1);
      break;
    case KvLayout::kPaged:
      kv.key = take_blocks(inputs, "key_cache");
      kv.value = take_blocks(inputs, "value_cache");
      kv.block_table = inputs.take("block_table", 2);
      break;
    case KvLayout::kPacked:
      take_packed(inputs, kv);
      kv.block_table = inputs.take("block_table", 2);
      break;
  }
  take_scales(inputs, kv);
  expect_stored_types(inputs, kv);
  return kv;
}

KvCacheView take_written_cache(CaseInputs& inputs) {
  KvCacheView kv;
  kv.layout = KvLayout::kPaged;
  kv.encoding = encoding_of(inputs.attrs().kv_cache_dtype);
  kv.key = take_blocks(inputs, "key_cache");
  kv.value = take_blocks(inputs, "value_cache");
  if (kv.encoding == KvEncoding::kPerTokenHead) {
    kv.k_scale_cache = inputs.take("k_scale_cache", 3);
    kv.v_scale_cache = inputs.take("v_scale_cache", 3);
  } else if (inputs.attrs().kv_cache_dtype != CacheDType::kAuto) {
    kv.k_scale = inputs.take_if_given("k_scale");
    kv.v_scale = inputs.take_if_given("v_scale");
  }
  expect_stored_types(inputs, kv);
  return kv;
}

}  // namespace attn::golden
