// Writes into caches: the whole cache is copied, then each token's slot is overwritten.
#include <algorithm>
#include <cmath>

#include "reference/second/operations.h"
#include "reference/second/quantised_code.h"

namespace attn::second {
namespace {

void copy(const TensorView& from, const MutableTensorView& to) {
  if (!to.present()) return;
  for (std::int64_t unit = 0; unit < from.num_units(); ++unit) {
    std::int64_t rest = unit;
    std::int64_t from_offset = 0;
    std::int64_t to_offset = 0;
    for (int axis = from.rank - 1; axis >= 0; --axis) {
      const std::int64_t i = rest % from.shape[axis];
      rest /= from.shape[axis];
      from_offset += i * from.stride_bytes[axis];
      to_offset += i * to.stride_bytes[axis];
    }
    const auto* source = static_cast<const std::byte*>(from.data) + from_offset;
    store_code(to.dtype, load_code(from.dtype, source),
               static_cast<std::byte*>(to.data) + to_offset);
  }
}

template <class... Index>
StoredValue stored_value(const TensorView& view, Index... index) {
  return {view.dtype, load_code(view.dtype, view.at(index...))};
}

// Calls write(token, block, slot) for every token that has a slot.
template <class Write>
void for_each_slot(const TensorView& slot_mapping, std::int64_t block_size, const Write& write) {
  for (std::int64_t t = 0; t < slot_mapping.shape[0]; ++t) {
    const std::int64_t slot = int_at(slot_mapping, t);
    if (slot >= 0) write(t, slot / block_size, slot % block_size);
  }
}

// Keys or values on their way into their half of the cache.
struct Side {
  const TensorView& rows;   // [tokens, heads, size]
  const TensorView& scale;  // of kPlain
  const MutableTensorView& cache;
  const MutableTensorView& scale_cache;
};

void write_plain(const Side& side, std::int64_t t, std::int64_t h, std::int64_t block,
                 std::int64_t slot) {
  for (std::int64_t d = 0; d < side.rows.shape[2]; ++d) {
    const DType to = side.cache.dtype;
    std::uint64_t code = 0;
    if (side.scale.present()) {
      const double scale = value_at(side.scale, side.scale.shape[0] == 1 ? 0 : h);
      code = divided_code(to, value_at(side.rows, t, h, d), static_cast<float>(scale));
    } else {
      code = converted_code(to, stored_value(side.rows, t, h, d));
    }
    store_code(to, code, side.cache.at(block, slot, h, d));
  }
}

void write_per_token_head(const Side& side, DType to, std::int64_t t, std::int64_t h,
                          std::int64_t block, std::int64_t slot) {
  double largest = 0.0;
  for (std::int64_t d = 0; d < side.rows.shape[2]; ++d) {
    largest = std::max(largest, std::fabs(value_at(side.rows, t, h, d)));
  }
  const float scale = computed_scale(largest, to == DType::kI8 ? 127.0F : 448.0F, 1e-6F);
  if (side.scale_cache.present()) {
    store_code(DType::kF32, encode(DType::kF32, scale, Overflow::kInfinity),
               side.scale_cache.at(block, slot, h));
  }
  if (!side.cache.present()) return;
  for (std::int64_t d = 0; d < side.rows.shape[2]; ++d) {
    store_code(to, reciprocal_code(to, value_at(side.rows, t, h, d), scale),
               side.cache.at(block, slot, h, d));
  }
}

// `before` is this side of the cache before the write.
void write_side(const CacheWriteOp& op, const TensorView& before, const Side& side) {
  const std::int64_t heads = op.cache.num_kv_heads();
  for_each_slot(op.slot_mapping, op.cache.block_size(),
                [&](std::int64_t t, std::int64_t block, std::int64_t slot) {
                  for (std::int64_t h = 0; h < heads; ++h) {
                    if (op.cache.encoding == KvEncoding::kPerTokenHead) {
                      write_per_token_head(side, before.dtype, t, h, block, slot);
                    } else if (side.cache.present()) {
                      write_plain(side, t, h, block, slot);
                    }
                  }
                });
}

// Element `place` of a latent row that has the types of its inputs or one scale.
void write_latent_element(const MlaCacheWriteOp& op, const MutableTensorView& cache,
                          const StoredValue& from, std::int64_t block, std::int64_t slot,
                          std::int64_t place) {
  const std::uint64_t code = op.k_scale.present()
                                 ? divided_code(cache.dtype, decode(from.type, from.code),
                                                static_cast<float>(value_at(op.k_scale, 0)))
                                 : converted_code(cache.dtype, from);
  store_code(cache.dtype, code, cache.at(block, slot, place));
}

void write_latent_row(const MlaCacheWriteOp& op, const MutableTensorView& cache, std::int64_t t,
                      std::int64_t block, std::int64_t slot) {
  const std::int64_t latent = op.kv_c.shape[1];
  for (std::int64_t l = 0; l < latent; ++l) {
    write_latent_element(op, cache, stored_value(op.kv_c, t, l), block, slot, l);
  }
  for (std::int64_t d = 0; d < op.k_pe.shape[1]; ++d) {
    write_latent_element(op, cache, stored_value(op.k_pe, t, d), block, slot, latent + d);
  }
}

// `code` of `type` at byte `place` of a row, low byte first.
void write_bytes(const MutableTensorView& cache, std::int64_t block, std::int64_t slot,
                 std::int64_t place, DType type, std::uint64_t code) {
  for (std::int64_t i = 0; i < unit_bytes(type); ++i, code >>= 8) {
    store_code(DType::kU8, code & 0xFF, cache.at(block, slot, place + i));
  }
}

// 512 codes ‖ a float32 scale for each 128 of them ‖ rope in bf16.
void write_ds_mla_row(const MlaCacheWriteOp& op, const MutableTensorView& cache, std::int64_t t,
                      std::int64_t block, std::int64_t slot) {
  constexpr std::int64_t kGroup = 128;
  const std::int64_t latent = op.kv_c.shape[1];
  const std::int64_t groups = latent / kGroup;
  for (std::int64_t group = 0; group < groups; ++group) {
    double largest = 0.0;
    for (std::int64_t l = group * kGroup; l < (group + 1) * kGroup; ++l) {
      largest = std::max(largest, std::fabs(value_at(op.kv_c, t, l)));
    }
    const float scale = computed_scale(largest, 448.0F, 0x1p-126F);
    for (std::int64_t l = group * kGroup; l < (group + 1) * kGroup; ++l) {
      write_bytes(cache, block, slot, l, DType::kF8E4M3FN,
                  divided_code(DType::kF8E4M3FN, value_at(op.kv_c, t, l), scale));
    }
    write_bytes(cache, block, slot, latent + 4 * group, DType::kF32,
                encode(DType::kF32, scale, Overflow::kInfinity));
  }
  const std::int64_t rope = latent + 4 * groups;
  for (std::int64_t d = 0; d < op.k_pe.shape[1]; ++d) {
    write_bytes(cache, block, slot, rope + 2 * d, DType::kBF16, stored_value(op.k_pe, t, d).code);
  }
}

}  // namespace

void cache_write(const CacheWriteOp& op, const Outputs& outputs) {
  const KvCacheView& cache = op.cache;
  copy(cache.key, outputs.key_cache);
  copy(cache.value, outputs.value_cache);
  copy(cache.k_scale_cache, outputs.k_scale_cache);
  copy(cache.v_scale_cache, outputs.v_scale_cache);
  write_side(op, cache.key, {op.key, cache.k_scale, outputs.key_cache, outputs.k_scale_cache});
  write_side(op, cache.value,
             {op.value, cache.v_scale, outputs.value_cache, outputs.v_scale_cache});
}

void mla_cache_write(const MlaCacheWriteOp& op, const Outputs& outputs) {
  const MutableTensorView& cache = outputs.kv_cache;
  if (!cache.present()) return;
  copy(op.kv_cache, cache);
  for_each_slot(op.slot_mapping, op.kv_cache.shape[1],
                [&](std::int64_t t, std::int64_t block, std::int64_t slot) {
                  if (op.encoding == KvEncoding::kFp8DsMla) {
                    write_ds_mla_row(op, cache, t, block, slot);
                  } else {
                    write_latent_row(op, cache, t, block, slot);
                  }
                });
}

}  // namespace attn::second
