#include "optimized/cpu/row_reader.h"

#include "attn/error.h"
#include "optimized/cpu/widen.h"

namespace attn::cpu {
namespace {

// The product of a code of at most 24 bits and a float32 scale fits a double, so the float32
// product is the exact one rounded once. NaN scales propagate.
void multiply(float factor, std::int64_t n, float* row) {
  if (factor == 1.0f) return;
  for (std::int64_t i = 0; i < n; ++i) row[i] *= factor;
}

constexpr std::int64_t kNvfp4Group = 16;

}  // namespace

float tensor_scale(const TensorView& scale, std::int64_t request, std::int64_t kv_head) {
  if (!scale.present()) return 1.0f;
  const std::int64_t head = scale.shape[scale.rank - 1] == 1 ? 0 : kv_head;
  return static_cast<float>(scale.rank == 2 ? value_at(scale, request, head)
                                            : value_at(scale, head));
}

RowReader::RowReader(const KvCacheView& kv, KvSide side, std::int64_t request, std::int64_t kv_head)
    : kv_(kv),
      data_(side == KvSide::kKey ? kv.key : kv.value),
      token_scale_(side == KvSide::kKey ? kv.k_scale_cache : kv.v_scale_cache),
      block_scale_(side == KvSide::kKey ? kv.k_block_scale : kv.v_block_scale),
      request_(request),
      kv_head_(kv_head),
      size_(side == KvSide::kKey ? kv.head_size() : kv.head_size_v()) {
  const bool key = side == KvSide::kKey;
  switch (kv.encoding) {
    case KvEncoding::kPlain:
      scale_ = tensor_scale(key ? kv.k_scale : kv.v_scale, request, kv_head);
      break;
    case KvEncoding::kPerTokenHead:
      break;
    case KvEncoding::kNvfp4:
      scale_ = tensor_scale(key ? kv.k_global_scale : kv.v_global_scale, request, 0);
      break;
    case KvEncoding::kFp8DsMla:
      throw Error("fp8_ds_mla rows hold a latent, not heads of K and V");
  }
  if (!kv.paged()) first_row_ = int_at(kv.kv_start_loc, request);
}

void RowReader::read(std::int64_t k, float* row) const {
  const Place place = place_of(k);
  if (kv_.encoding == KvEncoding::kNvfp4) return read_nvfp4(place, row);
  widen(data_.dtype, codes_at(place), data_.stride_bytes[data_.rank - 1], size_, row);
  multiply(scale_, size_, row);
  if (kv_.encoding == KvEncoding::kPerTokenHead) {
    const double scale = value_at(token_scale_, place.block, place.slot, kv_head_);
    multiply(static_cast<float>(scale), size_, row);
  }
}

RowReader::Place RowReader::place_of(std::int64_t k) const {
  if (!kv_.paged()) return {first_row_ + k, 0};
  const std::int64_t block_size = data_.shape[1];
  return {int_at(kv_.block_table, request_, k / block_size), k % block_size};
}

const std::byte* RowReader::codes_at(Place place) const {
  return kv_.paged() ? data_.at(place.block, place.slot, kv_head_)
                     : data_.at(place.block, kv_head_);
}

// e2m1 times its block scale (e4m3) has 6 significant bits: exact. Only the global scale rounds.
void RowReader::read_nvfp4(Place place, float* row) const {
  const float* element = code_values(DType::kF4E2M1);
  const float* block = code_values(DType::kF8E4M3FN);
  const std::byte* pairs = codes_at(place);
  const std::int64_t stride = data_.stride_bytes[3];
  for (std::int64_t first = 0; first < size_; first += kNvfp4Group) {
    const std::byte* code = block_scale_.at(place.block, place.slot, kv_head_, first / kNvfp4Group);
    const float group_scale = block[std::to_integer<int>(*code)];
    for (std::int64_t i = first; i < first + kNvfp4Group; i += 2) {
      const int pair = std::to_integer<int>(pairs[i / 2 * stride]);
      row[i] = element[pair & 0xF] * group_scale * scale_;
      row[i + 1] = element[pair >> 4] * group_scale * scale_;
    }
  }
}

}  // namespace attn::cpu
