#include "golden/exact/gather.h"

#include "attn/error.h"

namespace attn::exact {
namespace {

// The tensors of one side of a cache.
struct CacheSide {
  const TensorView& codes;
  const TensorView& scale;
  const TensorView& scale_of_token;
  const TensorView& scale_of_block;
  const TensorView& scale_of_all;
  std::int64_t head_size;
};

Real scale_of_head(const TensorView& scale, std::int64_t request, std::int64_t kv_head, int bits) {
  if (!scale.present()) return Real(bits, 1.0);
  if (scale.rank == 2) return Real(bits, value_at(scale, request, kv_head));
  return Real(bits, value_at(scale, scale.shape[0] == 1 ? 0 : kv_head));
}

Elements read_side(const KvCacheView& kv, const CacheSide& side, std::int64_t request,
                   std::int64_t k, std::int64_t kv_head, int bits) {
  const KvSlot at = kv_slot(kv, request, k);
  if (kv.encoding != KvEncoding::kNvfp4 && elements_per_unit(side.codes.dtype) != 1) {
    throw Error("i4 caches have no exact answer");
  }
  Elements elements;
  for (std::int64_t d = 0; d < side.head_size; ++d) {
    if (kv.encoding == KvEncoding::kNvfp4) {
      // Two codes a byte, the even element in the low half.
      const std::uint64_t pair =
          load_code(DType::kF4E2M1, side.codes.at(at.block, at.slot, kv_head, d / 2));
      Real x(bits, decode(DType::kF4E2M1, d % 2 == 0 ? pair : pair >> 4));
      x *= Real(bits, value_at(side.scale_of_block, at.block, at.slot, kv_head, d / 16));
      elements.push(x * Real(bits, value_at(side.scale_of_all, 0)));
      continue;
    }
    const double stored = kv.paged() ? value_at(side.codes, at.block, at.slot, kv_head, d)
                                     : value_at(side.codes, at.block, kv_head, d);
    const Real scale = kv.encoding == KvEncoding::kPerTokenHead
                           ? Real(bits, value_at(side.scale_of_token, at.block, at.slot, kv_head))
                           : scale_of_head(side.scale, request, kv_head, bits);
    elements.push(Real(bits, stored) * scale);
  }
  return elements;
}

}  // namespace

Elements read_key(const KvCacheView& kv, std::int64_t request, std::int64_t k, std::int64_t kv_head,
                  int bits) {
  const CacheSide side{kv.key,           kv.k_scale,        kv.k_scale_cache,
                       kv.k_block_scale, kv.k_global_scale, kv.head_size()};
  return read_side(kv, side, request, k, kv_head, bits);
}

Elements read_value(const KvCacheView& kv, std::int64_t request, std::int64_t k,
                    std::int64_t kv_head, int bits) {
  const CacheSide side{kv.value,         kv.v_scale,        kv.v_scale_cache,
                       kv.v_block_scale, kv.v_global_scale, kv.head_size_v()};
  return read_side(kv, side, request, k, kv_head, bits);
}

Elements read_query(const TensorView& query, std::int64_t token, std::int64_t head,
                    const TensorView& q_scale, std::int64_t kv_head, int bits) {
  const Real scale = scale_of_head(q_scale, 0, kv_head, bits);
  Elements elements;
  for (std::int64_t d = 0; d < query.shape[2]; ++d) {
    elements.push(Real(bits, value_at(query, token, head, d)) * scale);
  }
  return elements;
}

}  // namespace attn::exact
