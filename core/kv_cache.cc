#include "attn/kv_cache.h"

#include <fmt/core.h>

#include "attn/error.h"

namespace attn {
namespace {

// k_scale or v_scale of shape [1], [num_kv_heads] or [num_reqs, num_kv_heads]; absent is 1.
double tensor_scale(const TensorView& scale, std::int64_t request, std::int64_t kv_head) {
  if (!scale.present()) return 1.0;
  if (scale.rank == 2) return value_at(scale, request, kv_head);
  return value_at(scale, scale.shape[0] == 1 ? 0 : kv_head);
}

struct Side {
  const TensorView& data;
  const TensorView& scale;
  const TensorView& scale_cache;
  const TensorView& block_scale;
  const TensorView& global_scale;
};

// One element of a paged side, without scales; packed types have the even element in the low
// nibble.
double stored_element(const TensorView& data, KvSlot at, std::int64_t kv_head, std::int64_t dim) {
  if (elements_per_unit(data.dtype) == 1) return value_at(data, at.block, at.slot, kv_head, dim);
  const std::uint64_t pair = load_code(data.dtype, data.at(at.block, at.slot, kv_head, dim / 2));
  return decode(data.dtype, dim % 2 == 0 ? pair : pair >> 4);
}

double decode_side(const KvCacheView& kv, const Side& side, std::int64_t request, std::int64_t k,
                   std::int64_t kv_head, std::int64_t dim) {
  const KvSlot at = kv_slot(kv, request, k);
  switch (kv.encoding) {
    case KvEncoding::kPlain: {
      const double stored = kv.paged() ? value_at(side.data, at.block, at.slot, kv_head, dim)
                                       : value_at(side.data, at.block, kv_head, dim);
      return stored * tensor_scale(side.scale, request, kv_head);
    }
    case KvEncoding::kPerTokenHead:
      return stored_element(side.data, at, kv_head, dim) *
             value_at(side.scale_cache, at.block, at.slot, kv_head);
    case KvEncoding::kNvfp4:
      return stored_element(side.data, at, kv_head, dim) *
             value_at(side.block_scale, at.block, at.slot, kv_head, dim / 16) *
             value_at(side.global_scale, 0);
    case KvEncoding::kFp8DsMla:
      break;
  }
  throw Error("fp8_ds_mla rows hold a latent, not heads of K and V");
}

}  // namespace

std::string_view name(KvLayout layout) {
  constexpr std::string_view kNames[] = {"varlen", "paged", "paged_packed"};
  return kNames[static_cast<int>(layout)];
}

std::string_view name(KvEncoding encoding) {
  constexpr std::string_view kNames[] = {"plain", "per-token-head", "nvfp4", "fp8_ds_mla"};
  return kNames[static_cast<int>(encoding)];
}

KvSlot kv_slot(const KvCacheView& kv, std::int64_t request, std::int64_t k) {
  if (!kv.paged()) return {int_at(kv.kv_start_loc, request) + k, 0};
  const std::int64_t block_size = kv.block_size();
  return {int_at(kv.block_table, request, k / block_size), k % block_size};
}

double decode_key(const KvCacheView& kv, std::int64_t request, std::int64_t k, std::int64_t kv_head,
                  std::int64_t dim) {
  const Side side{kv.key, kv.k_scale, kv.k_scale_cache, kv.k_block_scale, kv.k_global_scale};
  return decode_side(kv, side, request, k, kv_head, dim);
}

double decode_value(const KvCacheView& kv, std::int64_t request, std::int64_t k,
                    std::int64_t kv_head, std::int64_t dim) {
  const Side side{kv.value, kv.v_scale, kv.v_scale_cache, kv.v_block_scale, kv.v_global_scale};
  return decode_side(kv, side, request, k, kv_head, dim);
}

}  // namespace attn
