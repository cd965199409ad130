// Keys or values of one request as they are stored, before they have a place.
#pragma once

#include <cstdint>
#include <functional>

#include "attn/kv_cache.h"
#include "golden/questions/draw.h"

namespace attn::questions {

struct CacheRows {
  HostTensor codes;        // [seq_len, num_kv_heads, head_size / elements per unit]
  HostTensor token_scale;  // kPerTokenHead: f32 [seq_len, num_kv_heads]
  HostTensor block_scale;  // kNvfp4: f8_e4m3fn [seq_len, num_kv_heads, head_size / 16]
};

// One side of a cache of a request.
struct CacheSide {
  RandomTensor tensor = RandomTensor::kKey;  // or kValue
  std::int64_t seq_len = 0;
  std::int64_t num_kv_heads = 1;
  std::int64_t head_size = 0;
  DType dtype = DType::kF32;
  KvEncoding encoding = KvEncoding::kPlain;
  std::function<std::int64_t(std::int64_t k)> request_of;  // whose coordinates a key has
  std::function<bool(std::int64_t k)> is_needle = [](std::int64_t) { return false; };
};

// kPerTokenHead as a cache writer does it: scale = max(amax / QMAX, 1e-6), codes of x * (1 /
// scale), QMAX 127 or 448, every step rounded to float32; int8 rounds half away from zero.
CacheRows draw_cache_rows(const Source& source, const FamilyValues& values, const CacheSide& side);

}  // namespace attn::questions
