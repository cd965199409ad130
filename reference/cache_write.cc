#include "reference/cache_write.h"

#include <cmath>
#include <vector>

#include "reference/ds_mla_row.h"
#include "reference/quantize.h"
#include "reference/store.h"

namespace attn::reference {
namespace {

float float_at(const TensorView& view, std::int64_t i) {
  return static_cast<float>(value_at(view, i));
}

// Every unit of `before`, bit for bit.
void copy_tensor(const TensorView& before, const MutableTensorView& after) {
  std::vector<std::int64_t> at(static_cast<std::size_t>(before.rank), 0);
  for (std::int64_t i = 0; i < before.num_units(); ++i) {
    std::int64_t from = 0;
    std::int64_t to = 0;
    for (int axis = 0; axis < before.rank; ++axis) {
      from += at[static_cast<std::size_t>(axis)] * before.stride_bytes[axis];
      to += at[static_cast<std::size_t>(axis)] * after.stride_bytes[axis];
    }
    store_code(before.dtype,
               load_code(before.dtype, static_cast<const std::byte*>(before.data) + from),
               static_cast<std::byte*>(after.data) + to);
    for (int axis = before.rank - 1; axis >= 0; --axis) {
      auto& index = at[static_cast<std::size_t>(axis)];
      if (++index < before.shape[axis]) break;
      index = 0;
    }
  }
}

// One element into a cache without a scale of its own: the same bits in the same type, else rounded
// once.
void write_plain(const TensorView& from, const std::byte* x, const MutableTensorView& cache,
                 std::byte* to, const float* scale) {
  if (scale == nullptr && from.dtype == cache.dtype) {
    store_code(cache.dtype, load_code(from.dtype, x), to);
    return;
  }
  const double value = decode(from.dtype, load_code(from.dtype, x));
  const Overflow overflow = bits(cache.dtype) < 16 ? Overflow::kSaturate : Overflow::kInfinity;
  const std::uint64_t code = scale == nullptr
                                 ? encode(cache.dtype, value, overflow)
                                 : quantize(cache.dtype, static_cast<float>(value), *scale);
  store_code(cache.dtype, code, to);
}

// Keys or values of a cache of heads.
struct Side {
  const TensorView& rows;   // [n, num_kv_heads, head_size]
  const TensorView& scale;  // kPlain; absent, [1] or [num_kv_heads]
  const MutableTensorView& cache;
  const MutableTensorView& scale_cache;  // kPerTokenHead
};

void write_plain_vector(const Side& side, std::int64_t token, std::int64_t head, KvSlot to) {
  const bool scaled = side.scale.present();
  const float scale = scaled ? float_at(side.scale, side.scale.shape[0] == 1 ? 0 : head) : 1.0f;
  for (std::int64_t d = 0; d < side.rows.shape[2]; ++d) {
    write_plain(side.rows, side.rows.at(token, head, d), side.cache,
                side.cache.at(to.block, to.slot, head, d), scaled ? &scale : nullptr);
  }
}

void write_scaled_vector(const Side& side, std::int64_t token, std::int64_t head, KvSlot to) {
  std::vector<float> x;
  for (std::int64_t d = 0; d < side.rows.shape[2]; ++d) {
    x.push_back(static_cast<float>(value_at(side.rows, token, head, d)));
  }
  const DType dtype = side.cache.dtype;
  const VectorScale scale = VectorScale::of_token_head(dtype, x);
  for (std::size_t d = 0; d < x.size(); ++d) {
    store_code(dtype, scale.code(dtype, x[d]), side.cache.at(to.block, to.slot, head, d));
  }
  if (side.scale_cache.present()) store(side.scale_cache, scale.scale, to.block, to.slot, head);
}

void write_side(const CacheWriteOp& op, const Side& side) {
  if (!side.cache.present()) return;
  const std::int64_t block_size = op.cache.block_size();
  for (std::int64_t token = 0; token < op.slot_mapping.shape[0]; ++token) {
    const std::int64_t slot = int_at(op.slot_mapping, token);
    if (slot < 0) continue;
    const KvSlot to = {slot / block_size, slot % block_size};
    for (std::int64_t head = 0; head < side.rows.shape[1]; ++head) {
      if (op.cache.encoding == KvEncoding::kPerTokenHead) {
        write_scaled_vector(side, token, head, to);
      } else {
        write_plain_vector(side, token, head, to);
      }
    }
  }
}

void copy_if_present(const TensorView& before, const MutableTensorView& after) {
  if (after.present()) copy_tensor(before, after);
}

}  // namespace

void cache_write(const CacheWriteOp& op, const Outputs& outputs) {
  const KvCacheView& cache = op.cache;
  copy_if_present(cache.key, outputs.key_cache);
  copy_if_present(cache.value, outputs.value_cache);
  copy_if_present(cache.k_scale_cache, outputs.k_scale_cache);
  copy_if_present(cache.v_scale_cache, outputs.v_scale_cache);
  write_side(op, {op.key, cache.k_scale, outputs.key_cache, outputs.k_scale_cache});
  write_side(op, {op.value, cache.v_scale, outputs.value_cache, outputs.v_scale_cache});
}

namespace {

void write_ds_mla_group(const MlaCacheWriteOp& op, std::int64_t token, std::int64_t group,
                        std::byte* row) {
  float largest = 0.0f;
  for (std::int64_t d = group * DsMlaRow::kGroup; d < (group + 1) * DsMlaRow::kGroup; ++d) {
    largest = std::max(largest, std::fabs(static_cast<float>(value_at(op.kv_c, token, d))));
  }
  const float scale = std::max(largest / 448.0f, 0x1p-126f);
  store_code(DType::kF32, encode(DType::kF32, scale, Overflow::kInfinity),
             row + DsMlaRow::scale_at(group));
  for (std::int64_t d = group * DsMlaRow::kGroup; d < (group + 1) * DsMlaRow::kGroup; ++d) {
    const auto x = static_cast<float>(value_at(op.kv_c, token, d));
    store_code(DType::kF8E4M3FN, quantize(DType::kF8E4M3FN, x, scale), row + d);
  }
}

void write_ds_mla_row(const MlaCacheWriteOp& op, std::int64_t token, std::byte* row) {
  for (std::int64_t group = 0; group < DsMlaRow::kGroups; ++group) {
    write_ds_mla_group(op, token, group, row);
  }
  for (std::int64_t d = 0; d < op.k_pe.shape[1]; ++d) {
    store_code(DType::kBF16, load_code(DType::kBF16, op.k_pe.at(token, d)),
               row + DsMlaRow::rope_at(d));
  }
}

void write_latent_row(const MlaCacheWriteOp& op, std::int64_t token, KvSlot to,
                      const MutableTensorView& cache) {
  const bool scaled = op.k_scale.present();
  const float scale = scaled ? float_at(op.k_scale, 0) : 1.0f;
  const std::int64_t latent = op.kv_c.shape[1];
  for (std::int64_t d = 0; d < latent + op.k_pe.shape[1]; ++d) {
    const TensorView& from = d < latent ? op.kv_c : op.k_pe;
    write_plain(from, from.at(token, d < latent ? d : d - latent), cache,
                cache.at(to.block, to.slot, d), scaled ? &scale : nullptr);
  }
}

}  // namespace

void mla_cache_write(const MlaCacheWriteOp& op, const Outputs& outputs) {
  const MutableTensorView& cache = outputs.kv_cache;
  if (!cache.present()) return;
  copy_tensor(op.kv_cache, cache);
  const std::int64_t block_size = op.kv_cache.shape[1];
  for (std::int64_t token = 0; token < op.slot_mapping.shape[0]; ++token) {
    const std::int64_t slot = int_at(op.slot_mapping, token);
    if (slot < 0) continue;
    const KvSlot to = {slot / block_size, slot % block_size};
    if (op.encoding == KvEncoding::kFp8DsMla) {
      write_ds_mla_row(op, token, cache.at(to.block, to.slot));
    } else {
      write_latent_row(op, token, to, cache);
    }
  }
}

}  // namespace attn::reference
