// The second reference's sets of visible keys against the predicate of MaskSpec, key by key, over
// random masks of every attribute.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "attn/problem.h"
#include "core/special_values.h"
#include "reference/second/visible_keys.h"
#include "tests/tensor_pool.h"

namespace attn::second {
namespace {

constexpr std::int64_t kHeads = 2;

class RandomMask {
 public:
  explicit RandomMask(std::uint64_t seed) : random_(seed) {
    draw_lengths();
    op_.mask.causal = one_in(2);
    if (one_in(6)) {
      draw_rswa();
    } else {
      draw_windows();
      draw_ranges();
    }
    if (one_in(4)) op_.mask.attn_mask = draw_scores(DType::kBool, {0.0, 1.0, 1.0});
    draw_biases();
  }

  const AttentionOp& op() const { return op_; }

 private:
  // From 0 to most.
  std::int64_t up_to(std::int64_t most) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most + 1));
  }
  bool one_in(std::int64_t n) { return up_to(n - 1) == 0; }

  // Mostly small, at times beyond every length.
  std::int64_t draw_distance() {
    return one_in(12) ? std::numeric_limits<std::int64_t>::max() - up_to(3) : up_to(9);
  }

  MutableTensorView draw(DType dtype, const std::vector<std::int64_t>& shape,
                         const std::vector<double>& choices) {
    std::int64_t count = 1;
    for (const std::int64_t length : shape) count *= length;
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(
          choices[static_cast<std::size_t>(up_to(static_cast<std::int64_t>(choices.size()) - 1))]);
    }
    return pool_.values(dtype, shape, values);
  }

  TensorView draw_scores(DType dtype, const std::vector<double>& choices) {
    const auto length = [&](std::int64_t full) { return one_in(4) ? 1 : full; };
    return draw(dtype,
                {length(num_reqs_), length(kHeads), length(most_rows_), length(most_keys_ + 2)},
                choices);
  }

  void draw_lengths() {
    num_reqs_ = 1 + up_to(2);
    std::vector<double> query_start = {0.0};
    std::vector<double> kv_start = {0.0};
    std::vector<double> seq_lens;
    for (std::int64_t r = 0; r < num_reqs_; ++r) {
      const std::int64_t rows = up_to(6);
      const std::int64_t keys = one_in(5) ? up_to(5) : rows + up_to(12);  // may be fewer than rows
      most_rows_ = std::max(most_rows_, rows);
      most_keys_ = std::max(most_keys_, keys);
      query_start.push_back(query_start.back() + static_cast<double>(rows));
      kv_start.push_back(kv_start.back() + static_cast<double>(keys));
      seq_lens.push_back(static_cast<double>(keys));
    }
    op_.query_start_loc = pool_.values(DType::kI32, {num_reqs_ + 1}, query_start);
    op_.kv.kv_start_loc = pool_.values(DType::kI32, {num_reqs_ + 1}, kv_start);
    op_.seq_lens = pool_.values(DType::kI32, {num_reqs_}, seq_lens);
    op_.query = pool_.zeros(
        DType::kF32, {static_cast<std::int64_t>(query_start.back()), kHeads, std::int64_t{1}});
    op_.kv.key = pool_.zeros(DType::kF32, {static_cast<std::int64_t>(kv_start.back()), kHeads, 1});
    op_.kv.value = op_.kv.key;
  }

  void draw_rswa() {
    op_.mask.causal = true;
    op_.mask.rswa_window = 1 + draw_distance() / 2;
    op_.mask.rswa_prefix_lens =
        draw(DType::kI32, {num_reqs_}, {0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 20.0, -1.0});
  }

  void draw_windows() {
    MaskSpec& mask = op_.mask;
    if (one_in(3)) mask.window_left = draw_distance();
    if (one_in(3)) mask.window_right = draw_distance();
    if (one_in(3)) mask.sink_token_length = draw_distance();
    if (one_in(4)) mask.attention_chunk_size = 1 + draw_distance() / 2;
    if (one_in(3)) mask.attention_chunk_lookback = draw_distance();
    if (one_in(4)) mask.causal_per_req = draw(DType::kBool, {num_reqs_}, {0.0, 1.0});
  }

  void draw_ranges() {
    if (!one_in(3)) return;
    op_.mask.mm_prefix_ranges =
        draw(DType::kI32, {num_reqs_, 1 + up_to(3), 2},
             {-3.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 9.0, 12.0, 40.0, 2147483647.0});
    op_.mask.mm_prefix_clamp = one_in(2);
  }

  void draw_biases() {
    BiasSpec& bias = op_.bias;
    if (one_in(4)) {
      bias.alibi_form = static_cast<AlibiForm>(1 + up_to(4));
      bias.alibi_slopes = draw(DType::kF32, {kHeads}, {0.5, -2.0, 0.0, kInf});
    }
    if (one_in(4)) {
      bias.attn_bias = draw_scores(DType::kF32, {0.0, 1.5, -kInf, kInf, kNaN});
    }
    if (one_in(4)) {
      const std::int64_t nodes = 1 + up_to(5);
      bias.qq_bias = draw(DType::kF32, {nodes, nodes}, {0.0, 0.25, -kInf, kNaN});
    }
  }

  std::mt19937_64 random_;
  TensorPool pool_;
  AttentionOp op_;
  std::int64_t num_reqs_ = 0;
  std::int64_t most_rows_ = 0;
  std::int64_t most_keys_ = 0;
};

// MaskSpec's predicate and the biases' definitions, for one key.
struct Predicate {
  const AttentionOp& op;
  std::int64_t request, head, row, q, k;

  double element(const TensorView& view) const {
    const auto at = [&](int axis, std::int64_t i) { return view.shape[axis] == 1 ? 0 : i; };
    return value_at(view, at(0, request), at(1, head), at(2, row), at(3, k));
  }

  bool in_left_window() const {
    const MaskSpec& mask = op.mask;
    return mask.window_left == MaskSpec::kUnbounded || q - k <= mask.window_left;
  }

  bool in_chunks() const {
    const MaskSpec& mask = op.mask;
    if (mask.attention_chunk_size == 0) return true;
    const auto size = static_cast<double>(mask.attention_chunk_size);
    const double chunks =
        std::floor(static_cast<double>(q) / size) - std::floor(static_cast<double>(k) / size);
    return 0.0 <= chunks && chunks <= static_cast<double>(mask.attention_chunk_lookback);
  }

  bool in_a_range() const {
    const MaskSpec& mask = op.mask;
    if (!mask.mm_prefix_ranges.present()) return false;
    for (std::int64_t i = 0; i < mask.mm_prefix_ranges.shape[1]; ++i) {
      const std::int64_t start = int_at(mask.mm_prefix_ranges, request, i, 0);
      const std::int64_t end = int_at(mask.mm_prefix_ranges, request, i, 1);
      const bool holds_both =
          0 <= start && start < end && start <= q && q <= end && start <= k && k <= end;
      if (holds_both && (!mask.mm_prefix_clamp || in_left_window())) return true;
    }
    return false;
  }

  bool base() const {
    const MaskSpec& mask = op.mask;
    if (mask.rswa_window != 0) {
      return k <= q && (k < int_at(mask.rswa_prefix_lens, request) || q - k < mask.rswa_window);
    }
    const bool causal =
        mask.causal_per_req.present() ? int_at(mask.causal_per_req, request) != 0 : mask.causal;
    const bool c = !causal || k <= q;
    const bool l = in_left_window() || k < mask.sink_token_length;
    const bool r = mask.window_right == MaskSpec::kUnbounded || k - q <= mask.window_right;
    return (c && l && r && in_chunks()) || in_a_range();
  }

  double alibi() const {
    const double slope = value_at(op.bias.alibi_slopes, head);
    const auto d = static_cast<double>(q - k);
    switch (op.bias.alibi_form) {
      case AlibiForm::kRow:
        return -slope * d;
      case AlibiForm::kContext:
        return slope * static_cast<double>(k - op.context_len(request));
      case AlibiForm::kZero:
        return slope * static_cast<double>(k);
      case AlibiForm::kAbs:
        return -slope * std::fabs(d);
      default:
        return k <= q ? -slope * std::sqrt(d) : 0.0;
    }
  }

  bool masked_by_bias() const {
    const BiasSpec& bias = op.bias;
    if (bias.alibi_form != AlibiForm::kNone && alibi() == -kInf) return true;
    if (bias.attn_bias.present() && element(bias.attn_bias) == -kInf) return true;
    if (!bias.qq_bias.present()) return false;
    const std::int64_t node = k - op.context_len(request);
    const std::int64_t nodes = bias.qq_bias.shape[0];
    return row < nodes && 0 <= node && node < nodes && value_at(bias.qq_bias, row, node) == -kInf;
  }

  bool holds() const {
    if (!base() || masked_by_bias()) return false;
    return !op.mask.attn_mask.present() || element(op.mask.attn_mask) != 0.0;
  }
};

// What a run has met, so that none of it is vacuous.
struct Met {
  std::int64_t rows = 0, empty = 0, gaps = 0, negative = 0, visible = 0, hidden = 0;
};

void expect_predicate(const AttentionOp& op, std::uint64_t seed, Met& met) {
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
    for (std::int64_t row = 0; row < op.query_len(r); ++row) {
      const RowPlace at = row_place(op.query_start_loc, op.seq_lens, r, row);
      const std::int64_t q = op.seq_len(r) - op.query_len(r) + row;
      for (std::int64_t h = 0; h < kHeads; ++h) {
        std::vector<std::int64_t> expected;
        for (std::int64_t k = 0; k < op.seq_len(r); ++k) {
          if (Predicate{op, r, h, row, q, k}.holds()) expected.push_back(k);
        }
        ASSERT_EQ(visible_keys(op, at, h), expected)
            << "seed " << seed << ", request " << r << ", row " << row << ", head " << h;
        const auto count = static_cast<std::int64_t>(expected.size());
        ++met.rows;
        met.visible += count;
        met.hidden += op.seq_len(r) - count;
        if (q < 0) ++met.negative;
        if (count == 0) ++met.empty;
        if (count != 0 && expected.back() - expected.front() >= count) ++met.gaps;
      }
    }
  }
}

TEST(SecondReferenceVisibleKeys, AreThoseOfThePredicate) {
  Met met;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const RandomMask mask(seed);
    ASSERT_NO_THROW(AttentionProblem(mask.op())) << "seed " << seed;
    expect_predicate(mask.op(), seed, met);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(met.rows, 50000);
  EXPECT_GT(met.empty, 1000);
  EXPECT_GT(met.gaps, 1000);
  EXPECT_GT(met.negative, 1000);
  EXPECT_GT(met.visible, 50000);
  EXPECT_GT(met.hidden, 50000);
}

// Worked out by hand: 12 keys, the row at position 9.
std::vector<std::int64_t> keys_of_row_9(const MaskSpec& mask) {
  std::vector<std::int64_t> keys;
  const KeySet set = base_keys(mask, RowPlace{0, 1, 12, 8});
  for (const Interval& interval : set.intervals()) {
    for (std::int64_t k = interval.begin; k < interval.end; ++k) keys.push_back(k);
  }
  return keys;
}

using Keys = std::vector<std::int64_t>;

TEST(SecondReferenceVisibleKeys, CombineWindowsSinkTokensAndChunks) {
  MaskSpec mask;
  mask.causal = true;
  mask.window_left = 2;
  EXPECT_EQ(keys_of_row_9(mask), (Keys{7, 8, 9}));
  mask.sink_token_length = 2;
  EXPECT_EQ(keys_of_row_9(mask), (Keys{0, 1, 7, 8, 9}));
  mask.causal = false;
  mask.window_right = 1;
  EXPECT_EQ(keys_of_row_9(mask), (Keys{0, 1, 7, 8, 9, 10}));
  mask.attention_chunk_size = 4;  // the row's own chunk is 8..11
  EXPECT_EQ(keys_of_row_9(mask), (Keys{8, 9, 10}));
  mask.attention_chunk_lookback = 1;  // and 4..7
  EXPECT_EQ(keys_of_row_9(mask), (Keys{7, 8, 9, 10}));
}

TEST(SecondReferenceVisibleKeys, UniteRangesAndClampTheirPastSide) {
  TensorPool pool;
  MaskSpec mask;
  mask.causal = true;
  mask.window_left = 2;
  mask.mm_prefix_ranges =
      pool.values(DType::kI32, {1, 3, 2}, {4.0, 10.0, 9.0, 40.0, 0.0, 3.0});  // not the last
  EXPECT_EQ(keys_of_row_9(mask), (Keys{4, 5, 6, 7, 8, 9, 10, 11}));
  mask.mm_prefix_clamp = true;
  EXPECT_EQ(keys_of_row_9(mask), (Keys{7, 8, 9, 10, 11}));
}

TEST(SecondReferenceVisibleKeys, KeepThePromptOfRswa) {
  TensorPool pool;
  MaskSpec mask;
  mask.causal = true;
  mask.rswa_window = 2;
  mask.rswa_prefix_lens = pool.values(DType::kI32, {1}, {3.0});
  EXPECT_EQ(keys_of_row_9(mask), (Keys{0, 1, 2, 8, 9}));
}

}  // namespace
}  // namespace attn::second
