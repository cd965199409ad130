#include "reference/mask.h"

namespace attn::reference {
namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

}  // namespace

BaseMask::BaseMask(const MaskSpec& mask, std::int64_t request)
    : mask_(mask),
      causal_(mask.causal_per_req.present() ? int_at(mask.causal_per_req, request) != 0
                                            : mask.causal) {
  if (mask_.rswa_window != 0) prefix_len_ = int_at(mask_.rswa_prefix_lens, request);
  if (!mask_.mm_prefix_ranges.present()) return;
  for (std::int64_t i = 0; i < mask_.mm_prefix_ranges.shape[1]; ++i) {
    const std::int64_t start = int_at(mask_.mm_prefix_ranges, request, i, 0);
    const std::int64_t end = int_at(mask_.mm_prefix_ranges, request, i, 1);
    if (0 <= start && start < end) mm_ranges_.emplace_back(start, end);
  }
}

bool BaseMask::sees(std::int64_t q, std::int64_t k) const {
  if (mask_.rswa_window != 0) {
    return k <= q && (k < prefix_len_ || q - k < mask_.rswa_window);
  }
  const bool ordinary =
      (!causal_ || k <= q) && within_left(q, k) && within_right(q, k) && within_chunk(q, k);
  return ordinary || share_range(q, k);
}

bool BaseMask::within_left(std::int64_t q, std::int64_t k) const {
  return mask_.window_left == MaskSpec::kUnbounded || q - k <= mask_.window_left ||
         k < mask_.sink_token_length;
}

bool BaseMask::within_right(std::int64_t q, std::int64_t k) const {
  return mask_.window_right == MaskSpec::kUnbounded || k - q <= mask_.window_right;
}

bool BaseMask::within_chunk(std::int64_t q, std::int64_t k) const {
  const std::int64_t size = mask_.attention_chunk_size;
  if (size == 0) return true;
  const std::int64_t back = floor_div(q, size) - floor_div(k, size);
  return 0 <= back && back <= mask_.attention_chunk_lookback;
}

bool BaseMask::share_range(std::int64_t q, std::int64_t k) const {
  for (const auto& [start, end] : mm_ranges_) {
    const bool inside = start <= q && q <= end && start <= k && k <= end;
    const bool clamped = mask_.mm_prefix_clamp && mask_.window_left != MaskSpec::kUnbounded;
    if (inside && (!clamped || q - k <= mask_.window_left)) return true;
  }
  return false;
}

bool attn_mask_allows(const MaskSpec& mask, std::int64_t request, std::int64_t head,
                      std::int64_t row, std::int64_t k) {
  const TensorView& allowed = mask.attn_mask;
  if (!allowed.present()) return true;
  const auto index = [&](int axis, std::int64_t i) { return allowed.shape[axis] == 1 ? 0 : i; };
  return int_at(allowed, index(0, request), index(1, head), index(2, row), index(3, k)) != 0;
}

}  // namespace attn::reference
