#include "golden/exact/latent.h"

#include <utility>

namespace attn::exact {
namespace {

// A row of 656 bytes: 512 e4m3 codes, 4 float32 scales of 128 codes each, 64 bf16.
constexpr std::int64_t kGroup = 128;
constexpr std::int64_t kScalesAt = 512;
constexpr std::int64_t kRopeAt = 528;

std::uint64_t code_in_row(const TensorView& cache, std::int64_t block, std::int64_t slot,
                          std::int64_t first_byte, int bytes) {
  std::uint64_t code = 0;
  for (int i = 0; i < bytes; ++i) {
    code |= load_code(DType::kU8, cache.at(block, slot, first_byte + i)) << (8 * i);
  }
  return code;
}

LatentRow read_ds_mla_row(const MlaOp& op, std::int64_t block, std::int64_t slot, int bits) {
  LatentRow row;
  for (std::int64_t d = 0; d < op.kv_lora_rank; ++d) {
    const std::uint64_t code = code_in_row(op.kv_cache, block, slot, d, 1);
    const std::uint64_t scale =
        code_in_row(op.kv_cache, block, slot, kScalesAt + 4 * (d / kGroup), 4);
    row.latent.push(Real(bits, decode(DType::kF8E4M3FN, code)) *
                    Real(bits, decode(DType::kF32, scale)));
  }
  for (std::int64_t d = 0; d < op.qk_rope_head_dim; ++d) {
    const std::uint64_t code = code_in_row(op.kv_cache, block, slot, kRopeAt + 2 * d, 2);
    row.rope.push(Real(bits, decode(DType::kBF16, code)));
  }
  return row;
}

// Elements [0, size) of latent * w[:, head, :].
void append_projected(Elements& to, const Elements& latent, const TensorView& w, std::int64_t head,
                      int bits) {
  for (std::int64_t j = 0; j < w.shape[2]; ++j) {
    Real sum(bits);
    Real size(bits);
    for (std::size_t l = 0; l < latent.value.size(); ++l) {
      const Real weight(bits, value_at(w, static_cast<std::int64_t>(l), head, j));
      sum.add_product(latent.value[l], weight);
      size.add_product(latent.size[l], abs(weight));
    }
    to.push(std::move(sum), std::move(size));
  }
}

}  // namespace

LatentRow read_latent_row(const MlaOp& op, std::int64_t block, std::int64_t slot, int bits) {
  if (op.encoding == KvEncoding::kFp8DsMla) return read_ds_mla_row(op, block, slot, bits);
  const Real scale(bits, op.k_scale.present() ? value_at(op.k_scale, 0) : 1.0);
  LatentRow row;
  for (std::int64_t d = 0; d < op.kv_cache.shape[2]; ++d) {
    Elements& part = d < op.kv_lora_rank ? row.latent : row.rope;
    part.push(Real(bits, value_at(op.kv_cache, block, slot, d)) * scale);
  }
  return row;
}

Elements latent_key(const MlaOp& op, const LatentRow& row, std::int64_t head, int bits) {
  Elements key;
  if (op.form == MlaForm::kAbsorbed) {
    key = row.latent;
  } else {
    append_projected(key, row.latent, op.w_uk, head, bits);
  }
  key.value.insert(key.value.end(), row.rope.value.begin(), row.rope.value.end());
  key.size.insert(key.size.end(), row.rope.size.begin(), row.rope.size.end());
  return key;
}

Elements latent_value(const MlaOp& op, const LatentRow& row, std::int64_t head, int bits) {
  if (op.form == MlaForm::kAbsorbed) return row.latent;
  Elements value;
  append_projected(value, row.latent, op.w_uv, head, bits);
  return value;
}

}  // namespace attn::exact
