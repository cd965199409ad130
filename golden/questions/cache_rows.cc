#include "golden/questions/cache_rows.h"

#include <algorithm>
#include <cmath>

namespace attn::questions {
namespace {

class RowDrawer {
 public:
  RowDrawer(const Source& source, const FamilyValues& values, const CacheSide& side)
      : source_(source), values_(values), side_(side) {
    const std::int64_t units = side.head_size / elements_per_unit(side.dtype);
    rows_.codes = HostTensor(side.dtype, {side.seq_len, side.num_kv_heads, units});
    if (side.encoding == KvEncoding::kPerTokenHead) {
      rows_.token_scale = HostTensor(DType::kF32, {side.seq_len, side.num_kv_heads});
    }
    if (side.encoding == KvEncoding::kNvfp4) {
      rows_.block_scale =
          HostTensor(DType::kF8E4M3FN, {side.seq_len, side.num_kv_heads, side.head_size / 16});
    }
  }

  CacheRows draw() && {
    for (std::int64_t k = 0; k < side_.seq_len; ++k) {
      for (std::int64_t h = 0; h < side_.num_kv_heads; ++h) {
        if (side_.encoding == KvEncoding::kPerTokenHead) {
          write_token(k, h);
        } else if (side_.encoding == KvEncoding::kNvfp4) {
          draw_nvfp4(k, h);
        } else {
          draw_plain(k, h);
        }
      }
    }
    return std::move(rows_);
  }

 private:
  bool is_key() const { return side_.tensor == RandomTensor::kKey; }
  Place place(std::int64_t k, std::int64_t h, std::int64_t d) const {
    return {side_.request_of(k), k, h, d};
  }
  std::int64_t row(std::int64_t k, std::int64_t h) const { return k * side_.num_kv_heads + h; }

  void draw_plain(std::int64_t k, std::int64_t h) {
    for (std::int64_t d = 0; d < side_.head_size; ++d) {
      const Place at = place(k, h, d);
      rows_.codes.set_code(row(k, h) * side_.head_size + d,
                           is_key() ? values_.key_code(at, side_.dtype, side_.is_needle(k))
                                    : values_.value_code(at, side_.dtype));
    }
  }

  float element(std::int64_t k, std::int64_t h, std::int64_t d) const {
    const Place at = place(k, h, d);
    return static_cast<float>(is_key() ? values_.key(at, DType::kF32, side_.is_needle(k))
                                       : values_.value(at, DType::kF32));
  }

  void write_token(std::int64_t k, std::int64_t h) {
    const bool integer = side_.dtype == DType::kI8;
    float largest = 0.0F;
    for (std::int64_t d = 0; d < side_.head_size; ++d) {
      largest = std::max(largest, std::fabs(element(k, h, d)));
    }
    const float scale = std::max(largest / (integer ? 127.0F : 448.0F), 1e-6F);
    const float inverse = 1.0F / scale;
    rows_.token_scale.set(scale, k, h);
    for (std::int64_t d = 0; d < side_.head_size; ++d) {
      const float x = element(k, h, d) * inverse;
      rows_.codes.set_code(row(k, h) * side_.head_size + d,
                           encode(side_.dtype, integer ? std::round(x) : x, Overflow::kSaturate));
    }
  }

  void draw_nvfp4(std::int64_t k, std::int64_t h) {
    for (std::int64_t d = 0; d < side_.head_size; d += 2) {
      const std::uint64_t even =
          random_code(words_at(source_, side_.tensor, place(k, h, d)), side_.dtype);
      const std::uint64_t odd =
          random_code(words_at(source_, side_.tensor, place(k, h, d + 1)), side_.dtype);
      rows_.codes.set_code((row(k, h) * side_.head_size + d) / 2, even | odd << 4);
    }
    const RandomTensor scales = is_key() ? RandomTensor::kKBlockScale : RandomTensor::kVBlockScale;
    for (std::int64_t g = 0; g < side_.head_size / 16; ++g) {
      rows_.block_scale.set_code(row(k, h) * (side_.head_size / 16) + g,
                                 random_block_scale(words_at(source_, scales, place(k, h, g))));
    }
  }

  const Source& source_;
  const FamilyValues& values_;
  const CacheSide& side_;
  CacheRows rows_;
};

}  // namespace

CacheRows draw_cache_rows(const Source& source, const FamilyValues& values, const CacheSide& side) {
  return RowDrawer(source, values, side).draw();
}

}  // namespace attn::questions
