#include "golden/exact/cache_write.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "attn/error.h"

namespace attn::exact {
namespace {

bool is_fp8(DType type) {
  return type == DType::kF8E4M3FN || type == DType::kF8E4M3FNUZ || type == DType::kF8E5M2;
}

float value_in_f32(DType type, std::uint64_t code) {
  return static_cast<float>(decode(type, code));
}

std::uint64_t saturated(DType type, double x) { return encode(type, x, Overflow::kSaturate); }

// What a cache of type `to` stores of a number: its bits where the types agree, also when they are
// already fp8; fp8 of x / scale in float32; else the nearest number of the type.
std::uint64_t stored_code(DType from, std::uint64_t code, DType to, const float* scale) {
  if (is_fp8(to)) {
    if (from == to) return code;
    if (scale == nullptr) return saturated(to, decode(from, code));
    return saturated(to, value_in_f32(from, code) / *scale);
  }
  if (scale != nullptr) {
    throw Error(fmt::format("a scale for writes into {}: only fp8 caches have one", name(to)));
  }
  return from == to ? code : encode(to, decode(from, code), Overflow::kInfinity);
}

// Every unit of a cache of up to four axes.
void copy_all(const TensorView& before, const MutableTensorView& after) {
  std::array<std::int64_t, 4> shape = {1, 1, 1, 1};
  std::copy_n(before.shape, before.rank, shape.begin());
  for (std::int64_t a = 0; a < shape[0]; ++a) {
    for (std::int64_t b = 0; b < shape[1]; ++b) {
      for (std::int64_t c = 0; c < shape[2]; ++c) {
        for (std::int64_t d = 0; d < shape[3]; ++d) {
          store_code(after.dtype, load_code(before.dtype, before.at(a, b, c, d)),
                     after.at(a, b, c, d));
        }
      }
    }
  }
}

// The tensors of K or of V.
struct Side {
  const TensorView& rows;
  const TensorView& before;
  const TensorView& scale;
  const TensorView& scale_cache_before;
  const MutableTensorView& after;
  const MutableTensorView& scale_cache_after;
};

struct Slot {
  std::int64_t block;
  std::int64_t offset;
};

void write_plain(const Side& side, std::int64_t token, std::int64_t head, const Slot& slot) {
  float scale = 1.0F;
  if (side.scale.present()) {
    scale = static_cast<float>(value_at(side.scale, side.scale.shape[0] == 1 ? 0 : head));
  }
  for (std::int64_t d = 0; d < side.rows.shape[2]; ++d) {
    const std::uint64_t code = load_code(side.rows.dtype, side.rows.at(token, head, d));
    store_code(side.after.dtype,
               stored_code(side.rows.dtype, code, side.after.dtype,
                           side.scale.present() ? &scale : nullptr),
               side.after.at(slot.block, slot.offset, head, d));
  }
}

// scale = max(amax / QMAX, 1e-6), code of x * (1 / scale); int8 rounds half away from zero.
void write_per_token_head(const Side& side, std::int64_t token, std::int64_t head,
                          const Slot& slot) {
  const DType type = side.before.dtype;
  const auto x = [&](std::int64_t d) {
    return static_cast<float>(value_at(side.rows, token, head, d));
  };
  float amax = 0.0F;
  for (std::int64_t d = 0; d < side.rows.shape[2]; ++d) amax = std::max(amax, std::fabs(x(d)));
  const float scale = std::max(amax / (type == DType::kI8 ? 127.0F : 448.0F), 1e-6F);
  const float inverse = 1.0F / scale;
  if (side.scale_cache_after.present()) {
    store_code(DType::kF32, encode(DType::kF32, scale, Overflow::kInfinity),
               side.scale_cache_after.at(slot.block, slot.offset, head));
  }
  if (!side.after.present()) return;
  for (std::int64_t d = 0; d < side.rows.shape[2]; ++d) {
    const float scaled = x(d) * inverse;
    store_code(type, saturated(type, type == DType::kI8 ? std::round(scaled) : scaled),
               side.after.at(slot.block, slot.offset, head, d));
  }
}

void write_side(const CacheWriteOp& op, const Side& side) {
  if (side.after.present()) copy_all(side.before, side.after);
  if (side.scale_cache_after.present()) copy_all(side.scale_cache_before, side.scale_cache_after);
  const std::int64_t block_size = op.cache.block_size();
  for (std::int64_t token = 0; token < op.slot_mapping.shape[0]; ++token) {
    const std::int64_t at = int_at(op.slot_mapping, token);
    if (at < 0) continue;
    const Slot slot{at / block_size, at % block_size};
    for (std::int64_t head = 0; head < side.rows.shape[1]; ++head) {
      if (op.cache.encoding == KvEncoding::kPerTokenHead) {
        write_per_token_head(side, token, head, slot);
      } else if (side.after.present()) {
        write_plain(side, token, head, slot);
      }
    }
  }
}

// A row of the latent cache, in the types of the cache.
void write_plain_row(const MlaCacheWriteOp& op, std::int64_t token, const Slot& slot,
                     const MutableTensorView& after) {
  const float scale = op.k_scale.present() ? static_cast<float>(value_at(op.k_scale, 0)) : 1.0F;
  const auto write = [&](const TensorView& rows, std::int64_t first) {
    for (std::int64_t d = 0; d < rows.shape[1]; ++d) {
      const std::uint64_t code = load_code(rows.dtype, rows.at(token, d));
      store_code(
          after.dtype,
          stored_code(rows.dtype, code, after.dtype, op.k_scale.present() ? &scale : nullptr),
          after.at(slot.block, slot.offset, first + d));
    }
  };
  write(op.kv_c, 0);
  write(op.k_pe, op.kv_c.shape[1]);
}

// 512 e4m3 codes, one float32 scale = max(amax / 448, 2^-126) for every 128 of them, rope as it is.
void write_ds_mla_row(const MlaCacheWriteOp& op, std::int64_t token, const Slot& slot,
                      const MutableTensorView& after) {
  constexpr std::int64_t kGroup = 128;
  std::int64_t at = 0;
  const auto put = [&](std::uint64_t code, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      store_code(DType::kU8, (code >> (8 * i)) & 0xFF, after.at(slot.block, slot.offset, at++));
    }
  };
  const auto x = [&](std::int64_t d) { return static_cast<float>(value_at(op.kv_c, token, d)); };
  const std::int64_t latent = op.kv_c.shape[1];
  std::array<float, 4> scales{};
  for (std::int64_t group = 0; group < latent / kGroup; ++group) {
    float amax = 0.0F;
    for (std::int64_t d = 0; d < kGroup; ++d) {
      amax = std::max(amax, std::fabs(x(group * kGroup + d)));
    }
    scales[static_cast<std::size_t>(group)] = std::max(amax / 448.0F, 0x1p-126F);
  }
  for (std::int64_t d = 0; d < latent; ++d) {
    put(saturated(DType::kF8E4M3FN, x(d) / scales[static_cast<std::size_t>(d / kGroup)]), 1);
  }
  for (const float scale : scales) put(encode(DType::kF32, scale, Overflow::kInfinity), 4);
  for (std::int64_t d = 0; d < op.k_pe.shape[1]; ++d) {
    put(load_code(DType::kBF16, op.k_pe.at(token, d)), 2);
  }
}

}  // namespace

void answer(const CacheWriteOp& op, const Outputs& outputs) {
  const KvCacheView& cache = op.cache;
  write_side(op, {op.key, cache.key, cache.k_scale, cache.k_scale_cache, outputs.key_cache,
                  outputs.k_scale_cache});
  write_side(op, {op.value, cache.value, cache.v_scale, cache.v_scale_cache, outputs.value_cache,
                  outputs.v_scale_cache});
}

void answer(const MlaCacheWriteOp& op, const Outputs& outputs) {
  const MutableTensorView& after = outputs.kv_cache;
  if (!after.present()) return;
  copy_all(op.kv_cache, after);
  const std::int64_t block_size = op.kv_cache.shape[1];
  for (std::int64_t token = 0; token < op.slot_mapping.shape[0]; ++token) {
    const std::int64_t at = int_at(op.slot_mapping, token);
    if (at < 0) continue;
    const Slot slot{at / block_size, at % block_size};
    if (op.encoding == KvEncoding::kFp8DsMla) {
      write_ds_mla_row(op, token, slot, after);
    } else {
      write_plain_row(op, token, slot, after);
    }
  }
}

}  // namespace attn::exact
