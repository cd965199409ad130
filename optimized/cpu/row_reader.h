// One row of a cache (a token's key or value of one KV head) as float32, whatever its layout and
// encoding.
#pragma once

#include <cstdint>

#include "attn/kv_cache.h"

namespace attn::cpu {

enum class KvSide : std::uint8_t { kKey, kValue };

// Rows of one side, request and KV head. Each element is the exact product of its code and scales,
// rounded once to float32.
class RowReader {
 public:
  RowReader(const KvCacheView& kv, KvSide side, std::int64_t request, std::int64_t kv_head);

  std::int64_t size() const { return size_; }

  // The row of position k, 0 <= k < seq_len, to size() floats.
  void read(std::int64_t k, float* row) const;

 private:
  struct Place {
    std::int64_t block;  // varlen: row
    std::int64_t slot;
  };
  Place place_of(std::int64_t k) const;
  const std::byte* codes_at(Place place) const;
  void read_nvfp4(Place place, float* row) const;

  const KvCacheView& kv_;
  const TensorView& data_;
  const TensorView& token_scale_;
  const TensorView& block_scale_;
  std::int64_t request_;
  std::int64_t kv_head_;
  std::int64_t size_;
  std::int64_t first_row_ = 0;  // varlen
  float scale_ = 1.0f;          // of the tensor or head
};

// An f32 scale tensor of shape [1], [num_kv_heads] or [num_reqs, num_kv_heads]; absent is 1.
float tensor_scale(const TensorView& scale, std::int64_t request, std::int64_t kv_head);

}  // namespace attn::cpu
