#include "golden/questions/visible.h"

#include "core/special_values.h"

namespace attn::questions {
namespace {

bool in_a_common_range(const AttentionOp& op, std::int64_t request, std::int64_t q,
                       std::int64_t k) {
  const MaskSpec& mask = op.mask;
  if (!mask.mm_prefix_ranges.present()) return false;
  if (mask.mm_prefix_clamp && mask.window_left >= 0 && q - k > mask.window_left) return false;
  for (std::int64_t i = 0; i < mask.mm_prefix_ranges.shape[1]; ++i) {
    const std::int64_t start = int_at(mask.mm_prefix_ranges, request, i, 0);
    const std::int64_t end = int_at(mask.mm_prefix_ranges, request, i, 1);
    const bool is_range = 0 <= start && start < end;
    if (is_range && start <= q && q <= end && start <= k && k <= end) return true;
  }
  return false;
}

// floor(a / b), b > 0; a row before position 0 lies in a chunk before 0.
std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}

bool base_mask(const AttentionOp& op, std::int64_t request, std::int64_t q, std::int64_t k) {
  const MaskSpec& mask = op.mask;
  if (mask.rswa_window > 0) {
    return k <= q && (k < int_at(mask.rswa_prefix_lens, request) || q - k < mask.rswa_window);
  }
  if (in_a_common_range(op, request, q, k)) return true;
  const bool causal =
      mask.causal_per_req.present() ? int_at(mask.causal_per_req, request) != 0 : mask.causal;
  if (causal && k > q) return false;
  if (mask.window_left >= 0 && q - k > mask.window_left && k >= mask.sink_token_length)
    return false;
  if (mask.window_right >= 0 && k - q > mask.window_right) return false;
  if (mask.attention_chunk_size > 0) {
    const std::int64_t behind =
        floor_div(q, mask.attention_chunk_size) - floor_div(k, mask.attention_chunk_size);
    if (behind < 0 || behind > mask.attention_chunk_lookback) return false;
  }
  return true;
}

// An element of a tensor over scores; an axis of length 1 holds for all.
double score_element(const TensorView& view, std::int64_t request, std::int64_t head,
                     std::int64_t row, std::int64_t k) {
  const std::int64_t wanted[4] = {request, head, row, k};
  std::int64_t at[4];
  for (int axis = 0; axis < 4; ++axis) at[axis] = view.shape[axis] == 1 ? 0 : wanted[axis];
  return value_at(view, at[0], at[1], at[2], at[3]);
}

bool bias_hides(const AttentionOp& op, std::int64_t request, std::int64_t head, std::int64_t row,
                std::int64_t k) {
  const BiasSpec& bias = op.bias;
  if (bias.attn_bias.present() && score_element(bias.attn_bias, request, head, row, k) == -kInf) {
    return true;
  }
  if (!bias.qq_bias.present()) return false;
  const std::int64_t n = bias.qq_bias.shape[0];
  const std::int64_t column = k - op.context_len(request);
  return row < n && 0 <= column && column < n && value_at(bias.qq_bias, row, column) == -kInf;
}

}  // namespace

bool sees(const AttentionOp& op, std::int64_t request, std::int64_t head, std::int64_t row,
          std::int64_t k) {
  const std::int64_t q = op.context_len(request) + row;
  if (!base_mask(op, request, q, k)) return false;
  const TensorView& attn_mask = op.mask.attn_mask;
  if (attn_mask.present() && score_element(attn_mask, request, head, row, k) == 0.0) return false;
  return !bias_hides(op, request, head, row, k);
}

}  // namespace attn::questions
