// Which keys a row may see, and what is added to its scores. Plain data; the predicate itself is
// written once in reference/ and, independently, in every backend.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/view.h"

namespace attn {

// Positions are absolute: q = seq_len - query_len + row, k in [0, seq_len). A key is visible when
//
//   0 <= k < seq_len  and  base(q, k)  and  attn_mask  and  score != -inf
//   base = k <= q and (k < p or q - k < w)              when rswa_window w is set
//        = (C and L and R and G) or M                   otherwise
//     C  not causal, or k <= q
//     L  no window_left, or q - k <= window_left, or k < sink_token_length
//     R  no window_right, or k - q <= window_right
//     G  no attention_chunk_size c, or 0 <= floor(q/c) - floor(k/c) <= attention_chunk_lookback
//     M  a range with 0 <= start < end holds q and k (both ends inclusive) and, when clamped and
//        window_left is given, q - k <= window_left
//
// A layer with vLLM's `sliding_window` W has window_left = W - 1.
struct MaskSpec {
  static constexpr std::int64_t kUnbounded = -1;

  bool causal = false;
  TensorView causal_per_req;                  // bool [num_reqs], overrides `causal`; optional
  std::int64_t window_left = kUnbounded;      // >= 0, or kUnbounded
  std::int64_t window_right = kUnbounded;     // >= 0, or kUnbounded
  std::int64_t sink_token_length = 0;         // keys k < this are exempt from the left bound
  std::int64_t attention_chunk_size = 0;      // 0 = off
  std::int64_t attention_chunk_lookback = 0;  // chunks before the row's own
  std::int64_t rswa_window = 0;               // 0 = off; excludes every field above but causal
  TensorView rswa_prefix_lens;                // i32 [num_reqs], with rswa_window
  TensorView mm_prefix_ranges;  // i32 [num_reqs, n, 2]; start >= end is padding; optional
  bool mm_prefix_clamp = false;
  TensorView
      attn_mask;  // bool [num_reqs|1, num_heads|1, max query_len|1, >=max seq_len|1]; optional
};

enum class AlibiForm : std::uint8_t {
  kNone,
  kRow,      // m * (k - q)
  kContext,  // m * (k - (seq_len - query_len))
  kZero,     // m * k
  kAbs,      // -m * |q - k|
  kSqrt,     // -m * sqrt(q - k) for k <= q, else 0
};

// Added to the score after scale and soft cap, in this order. An added -inf masks the key.
struct BiasSpec {
  AlibiForm alibi_form = AlibiForm::kNone;
  TensorView alibi_slopes;  // f32 [num_heads], with alibi_form
  TensorView attn_bias;     // floating, shape as attn_mask; optional
  TensorView qq_bias;  // f32 [n, n]: (row, k - context_len) for context_len <= k < context_len + n;
                       // optional

  bool any() const {
    return alibi_form != AlibiForm::kNone || attn_bias.present() || qq_bias.present();
  }
};

// The published ALiBi slopes m_h for any head count (Press, Smith, Lewis: Train short, test long,
// ICLR 2022): 2^(-8(h+1)/n) for a power of two n; else those of the largest power of two n2 below,
// then the odd-numbered ones of 2*n2. `num_heads` >= 1.
std::vector<float> alibi_slopes(std::int64_t num_heads);

}  // namespace attn
