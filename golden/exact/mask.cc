#include "golden/exact/mask.h"

namespace attn::exact {
namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

// C and L and R and G
bool sees_by_distance(const MaskSpec& mask, const RowPlace& row, std::int64_t k) {
  const std::int64_t q = row.position;
  const bool causal =
      mask.causal_per_req.present() ? int_at(mask.causal_per_req, row.request) != 0 : mask.causal;
  if (causal && k > q) return false;
  if (mask.window_left != MaskSpec::kUnbounded && q - k > mask.window_left &&
      k >= mask.sink_token_length) {
    return false;
  }
  if (mask.window_right != MaskSpec::kUnbounded && k - q > mask.window_right) return false;
  if (mask.attention_chunk_size == 0) return true;
  const std::int64_t chunks_back =
      floor_div(q, mask.attention_chunk_size) - floor_div(k, mask.attention_chunk_size);
  return chunks_back >= 0 && chunks_back <= mask.attention_chunk_lookback;
}

// M
bool sees_by_range(const MaskSpec& mask, const RowPlace& row, std::int64_t k) {
  if (!mask.mm_prefix_ranges.present()) return false;
  const std::int64_t q = row.position;
  if (mask.mm_prefix_clamp && mask.window_left != MaskSpec::kUnbounded &&
      q - k > mask.window_left) {
    return false;
  }
  for (std::int64_t i = 0; i < mask.mm_prefix_ranges.shape[1]; ++i) {
    const std::int64_t start = int_at(mask.mm_prefix_ranges, row.request, i, 0);
    const std::int64_t end = int_at(mask.mm_prefix_ranges, row.request, i, 1);
    if (start < 0 || start >= end) continue;
    if (start <= q && q <= end && start <= k && k <= end) return true;
  }
  return false;
}

bool base(const MaskSpec& mask, const RowPlace& row, std::int64_t k) {
  if (mask.rswa_window == 0) return sees_by_distance(mask, row, k) || sees_by_range(mask, row, k);
  const std::int64_t q = row.position;
  return k <= q && (k < int_at(mask.rswa_prefix_lens, row.request) || q - k < mask.rswa_window);
}

}  // namespace

RowPlace place_of(const TensorView& query_start_loc, const TensorView& seq_lens,
                  std::int64_t token) {
  std::int64_t request = 0;
  while (int_at(query_start_loc, request + 1) <= token) ++request;
  RowPlace place;
  place.token = token;
  place.request = request;
  const std::int64_t start = int_at(query_start_loc, request);
  place.row = token - start;
  place.seq_len = int_at(seq_lens, request);
  place.context_len = place.seq_len - (int_at(query_start_loc, request + 1) - start);
  place.position = place.context_len + place.row;
  return place;
}

const std::byte* broadcast_at(const TensorView& view, const RowPlace& row, std::int64_t head,
                              std::int64_t k) {
  const auto along = [&](int axis, std::int64_t i) { return view.shape[axis] == 1 ? 0 : i; };
  return view.at(along(0, row.request), along(1, head), along(2, row.row), along(3, k));
}

bool may_see(const MaskSpec& mask, const RowPlace& row, std::int64_t head, std::int64_t k) {
  if (!base(mask, row, k)) return false;
  if (!mask.attn_mask.present()) return true;
  return load_code(DType::kBool, broadcast_at(mask.attn_mask, row, head, k)) != 0;
}

}  // namespace attn::exact
