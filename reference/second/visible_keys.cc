#include "reference/second/visible_keys.h"

#include <algorithm>

#include "reference/second/score_bias.h"

namespace attn::second {
namespace {

// Positions are 32-bit, so a distance beyond this bounds nothing; sums with it do not overflow.
std::int64_t distance(std::int64_t asked) {
  return std::min<std::int64_t>(asked, std::int64_t{1} << 40);
}

// Key q - distance and everything after.
KeySet within_left(std::int64_t q, std::int64_t left) { return KeySet::from(q - distance(left)); }

// Chunks [first, last] of `size` positions, the last being the row's own.
KeySet chunk_keys(const MaskSpec& mask, std::int64_t q) {
  const std::int64_t size = distance(mask.attention_chunk_size);
  const std::int64_t own = q >= 0 ? q / size : -((-q + size - 1) / size);  // floor
  // No key lies before chunk 0.
  const std::int64_t first =
      mask.attention_chunk_lookback >= own ? 0 : own - mask.attention_chunk_lookback;
  return {first * size, (own + 1) * size};
}

KeySet rswa_keys(const MaskSpec& mask, const RowPlace& at) {
  const std::int64_t q = at.position();
  const std::int64_t prefix = int_at(mask.rswa_prefix_lens, at.request);
  const KeySet prompt_or_recent =
      KeySet::before(prefix) | KeySet::from(q - distance(mask.rswa_window) + 1);
  return prompt_or_recent & KeySet::before(q + 1);
}

KeySet window_keys(const MaskSpec& mask, const RowPlace& at) {
  const std::int64_t q = at.position();
  KeySet keys = KeySet::before(KeySet::kNoBound);
  const bool causal =
      mask.causal_per_req.present() ? int_at(mask.causal_per_req, at.request) != 0 : mask.causal;
  if (causal) keys = keys & KeySet::before(q + 1);
  if (mask.window_left != MaskSpec::kUnbounded) {
    keys = keys & (KeySet::before(mask.sink_token_length) | within_left(q, mask.window_left));
  }
  if (mask.window_right != MaskSpec::kUnbounded) {
    keys = keys & KeySet::before(q + distance(mask.window_right) + 1);
  }
  if (mask.attention_chunk_size != 0) keys = keys & chunk_keys(mask, q);
  return keys;
}

// Keys of the ranges that hold the row.
KeySet range_keys(const MaskSpec& mask, const RowPlace& at) {
  KeySet keys;
  if (!mask.mm_prefix_ranges.present()) return keys;
  const std::int64_t q = at.position();
  for (std::int64_t i = 0; i < mask.mm_prefix_ranges.shape[1]; ++i) {
    const std::int64_t first = int_at(mask.mm_prefix_ranges, at.request, i, 0);
    const std::int64_t last = int_at(mask.mm_prefix_ranges, at.request, i, 1);
    const bool padding = first < 0 || first >= last;
    if (!padding && first <= q && q <= last) keys = keys | KeySet(first, last + 1);
  }
  const bool clamped = mask.mm_prefix_clamp && mask.window_left != MaskSpec::kUnbounded;
  return clamped ? keys & within_left(q, mask.window_left) : keys;
}

}  // namespace

KeySet base_keys(const MaskSpec& mask, const RowPlace& at) {
  const KeySet keys =
      mask.rswa_window != 0 ? rswa_keys(mask, at) : window_keys(mask, at) | range_keys(mask, at);
  return keys & KeySet(0, at.seq_len);
}

std::vector<std::int64_t> visible_keys(const AttentionOp& op, const RowPlace& at,
                                       std::int64_t head) {
  std::vector<std::int64_t> keys;
  const KeySet base = base_keys(op.mask, at);
  for (const Interval& interval : base.intervals()) {
    for (std::int64_t k = interval.begin; k < interval.end; ++k) keys.push_back(k);
  }
  if (const TensorView& mask = op.mask.attn_mask; mask.present()) {
    std::erase_if(keys, [&](std::int64_t k) {
      const BroadcastPlace place = broadcast_place(mask, at, head, k);
      return int_at(mask, place.at[0], place.at[1], place.at[2], place.at[3]) == 0;
    });
  }
  std::erase_if(keys, [&](std::int64_t k) { return score_bias(op, at, head, k).masks; });
  return keys;
}

}  // namespace attn::second
