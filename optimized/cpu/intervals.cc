#include "optimized/cpu/intervals.h"

#include <algorithm>

namespace attn::cpu {
namespace {

// Bounds and positions are below 2^32 in magnitude; a window or chunk at or beyond this value acts
// as this value, and no sum or product below overflows.
constexpr std::int64_t kHuge = std::int64_t{1} << 40;

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

// Intervals of one row in the order they are found.
class Collector {
 public:
  Collector(KeyInterval* storage, std::int64_t seq_len) : storage_(storage), seq_len_(seq_len) {}

  void add(std::int64_t begin, std::int64_t end) {
    begin = std::max<std::int64_t>(begin, 0);
    end = std::min(end, seq_len_);
    if (begin < end) storage_[count_++] = {begin, end};
  }

  // Sorted, with overlapping and touching intervals joined.
  std::span<const KeyInterval> joined() {
    std::sort(storage_, storage_ + count_,
              [](const KeyInterval& a, const KeyInterval& b) { return a.begin < b.begin; });
    std::int64_t last = 0;
    for (std::int64_t i = 1; i < count_; ++i) {
      if (storage_[i].begin <= storage_[last].end) {
        storage_[last].end = std::max(storage_[last].end, storage_[i].end);
      } else {
        storage_[++last] = storage_[i];
      }
    }
    return {storage_, static_cast<std::size_t>(count_ == 0 ? 0 : last + 1)};
  }

 private:
  KeyInterval* storage_;
  std::int64_t seq_len_;
  std::int64_t count_ = 0;
};

// First key inside the left window, or before every key when there is none.
std::int64_t left_bound(const MaskSpec& mask, std::int64_t q) {
  if (mask.window_left == MaskSpec::kUnbounded) return -kHuge;
  return q - std::min(mask.window_left, kHuge);
}

void add_rswa(const MaskSpec& mask, std::int64_t prefix_len, std::int64_t q, Collector& keys) {
  keys.add(0, std::min(prefix_len, q + 1));
  keys.add(q + 1 - std::min(mask.rswa_window, kHuge), q + 1);
}

// Causal, window and chunk bounds make one interval; sink tokens keep what the left bound cuts off
// its front.
void add_window(const MaskSpec& mask, bool causal, std::int64_t q, Collector& keys) {
  std::int64_t begin = 0;
  std::int64_t end = kHuge;
  if (causal) end = q + 1;
  if (mask.window_right != MaskSpec::kUnbounded) {
    end = std::min(end, q + std::min(mask.window_right, kHuge) + 1);
  }
  if (mask.attention_chunk_size != 0) {
    const std::int64_t size = std::min(mask.attention_chunk_size, kHuge);
    const std::int64_t chunk = floor_div(q, size);
    const std::int64_t first =
        std::max<std::int64_t>(chunk - std::min(mask.attention_chunk_lookback, kHuge), 0);
    begin = first * size;
    end = std::min(end, (chunk + 1) * size);
  }
  keys.add(begin, std::min(end, mask.sink_token_length));
  keys.add(std::max(begin, left_bound(mask, q)), end);
}

void add_ranges(const MaskSpec& mask, std::int64_t request, std::int64_t q, Collector& keys) {
  const TensorView& ranges = mask.mm_prefix_ranges;
  for (std::int64_t i = 0; i < ranges.shape[1]; ++i) {
    const std::int64_t start = int_at(ranges, request, i, 0);
    const std::int64_t last = int_at(ranges, request, i, 1);
    if (start < 0 || start >= last || q < start || q > last) continue;
    keys.add(mask.mm_prefix_clamp ? std::max(start, left_bound(mask, q)) : start, last + 1);
  }
}

}  // namespace

BaseMask::BaseMask(const MaskSpec& mask, std::int64_t request, std::int64_t seq_len)
    : mask_(mask),
      request_(request),
      seq_len_(seq_len),
      causal_(mask.causal_per_req.present() ? int_at(mask.causal_per_req, request) != 0
                                            : mask.causal) {}

std::int64_t BaseMask::max_intervals(const MaskSpec& mask) {
  return 2 + (mask.mm_prefix_ranges.present() ? mask.mm_prefix_ranges.shape[1] : 0);
}

std::span<const KeyInterval> BaseMask::row(std::int64_t q, KeyInterval* storage) const {
  Collector keys(storage, seq_len_);
  if (mask_.rswa_window != 0) {
    add_rswa(mask_, int_at(mask_.rswa_prefix_lens, request_), q, keys);
  } else {
    add_window(mask_, causal_, q, keys);
    if (mask_.mm_prefix_ranges.present()) add_ranges(mask_, request_, q, keys);
  }
  return keys.joined();
}

std::int64_t RowKeys::next(std::int64_t k) {
  while (!left_.empty() && left_.front().end <= k) left_ = left_.subspan(1);
  return left_.empty() ? kNone : std::max(k, left_.front().begin);
}

std::uint64_t RowKeys::bits(std::int64_t first) const {
  std::uint64_t bits = 0;
  for (const KeyInterval& interval : left_) {
    if (interval.begin >= first + 64) break;
    bits |= range_bits(first, interval.begin, interval.end);
  }
  return bits;
}

std::uint64_t range_bits(std::int64_t first, std::int64_t begin, std::int64_t end) {
  const auto below = [first](std::int64_t key) {  // bits of the keys before `key`
    const std::int64_t n = key - first;
    if (n <= 0) return std::uint64_t{0};
    return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
  };
  return below(end) & ~below(begin);
}

}  // namespace attn::cpu
