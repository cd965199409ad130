// Keys, values and queries as numbers: every code decoded exactly, times its scales exactly (a
// double times a float has 77 bits, so double would round where this does not).
#pragma once

#include <cstdint>

#include "attn/kv_cache.h"
#include "golden/exact/elements.h"

namespace attn::exact {

Elements read_key(const KvCacheView& kv, std::int64_t request, std::int64_t k, std::int64_t kv_head,
                  int bits);
Elements read_value(const KvCacheView& kv, std::int64_t request, std::int64_t k,
                    std::int64_t kv_head, int bits);

// query[token, head, :] times q_scale[kv_head], or [0] of one; an absent scale is 1.
Elements read_query(const TensorView& query, std::int64_t token, std::int64_t head,
                    const TensorView& q_scale, std::int64_t kv_head, int bits);

}  // namespace attn::exact
