// The reference's base mask against sets of keys written down by hand: one string a row, one
// character a key, x = visible.
#include "reference/mask.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tensor_pool.h"

namespace attn::reference {
namespace {

using Rows = std::vector<std::string>;

// Rows at positions first_q ... last_q of a request with seq_len keys.
Rows rows(const MaskSpec& spec, std::int64_t first_q, std::int64_t last_q, std::int64_t seq_len,
          std::int64_t request = 0) {
  const BaseMask mask(spec, request);
  Rows drawn;
  for (std::int64_t q = first_q; q <= last_q; ++q) {
    std::string row;
    for (std::int64_t k = 0; k < seq_len; ++k) row += mask.sees(q, k) ? 'x' : '.';
    drawn.push_back(row);
  }
  return drawn;
}

TEST(BaseMask, WithoutCausalEveryKeyIsVisible) {
  EXPECT_EQ(rows({}, -1, 3, 3), (Rows{"xxx", "xxx", "xxx", "xxx", "xxx"}));
}

TEST(BaseMask, CausalRowsSeeUpToThemselvesAndNothingBeforePositionZero) {
  EXPECT_EQ(rows({.causal = true}, -2, 3, 4),
            (Rows{"....", "....", "x...", "xx..", "xxx.", "xxxx"}));
}

TEST(BaseMask, FlagOfARequestReplacesCausal) {
  TensorPool pool;
  MaskSpec mask{.causal = true, .causal_per_req = pool.values(DType::kBool, {2}, {0, 1})};
  EXPECT_EQ(rows(mask, 0, 1, 3, 0), (Rows{"xxx", "xxx"}));
  EXPECT_EQ(rows(mask, 0, 1, 3, 1), (Rows{"x..", "xx."}));
  mask.causal = false;
  EXPECT_EQ(rows(mask, 0, 1, 3, 0), (Rows{"xxx", "xxx"}));
  EXPECT_EQ(rows(mask, 0, 1, 3, 1), (Rows{"x..", "xx."}));
}

TEST(BaseMask, LeftBoundIsADistanceAndInclusive) {
  EXPECT_EQ(rows({.causal = true, .window_left = 2}, 0, 4, 5),
            (Rows{"x....", "xx...", "xxx..", ".xxx.", "..xxx"}));
  EXPECT_EQ(rows({.causal = true, .window_left = 0}, 0, 2, 3), (Rows{"x..", ".x.", "..x"}));
}

TEST(BaseMask, LeftBoundAloneLeavesTheFutureVisible) {
  EXPECT_EQ(rows({.window_left = 1}, 0, 3, 4), (Rows{"xxxx", "xxxx", ".xxx", "..xx"}));
}

TEST(BaseMask, RightBoundIsADistanceAndInclusive) {
  EXPECT_EQ(rows({.window_right = 1}, -2, 2, 4), (Rows{"....", "x...", "xx..", "xxx.", "xxxx"}));
  EXPECT_EQ(rows({.window_right = 0}, 0, 1, 3), (Rows{"x..", "xx."}));
}

TEST(BaseMask, BothBoundsMakeASymmetricWindow) {
  EXPECT_EQ(rows({.window_left = 1, .window_right = 1}, -1, 4, 4),
            (Rows{"x...", "xx..", "xxx.", ".xxx", "..xx", "...x"}));
}

TEST(BaseMask, CausalAndRightBoundBothHold) {
  EXPECT_EQ(rows({.causal = true, .window_right = 2}, 0, 2, 4), (Rows{"x...", "xx..", "xxx."}));
}

TEST(BaseMask, SinkTokensAreExemptFromTheLeftBoundOnly) {
  EXPECT_EQ(rows({.causal = true, .window_left = 0, .sink_token_length = 2}, 0, 4, 5),
            (Rows{"x....", "xx...", "xxx..", "xx.x.", "xx..x"}));
  EXPECT_EQ(rows({.window_right = 0, .sink_token_length = 3}, 0, 1, 4), (Rows{"x...", "xx.."}));
  EXPECT_EQ(rows({.causal = true, .sink_token_length = 2, .attention_chunk_size = 2}, 2, 3, 4),
            (Rows{"..x.", "..xx"}));
}

TEST(BaseMask, ChunksHoldTheirOwnKeys) {
  EXPECT_EQ(rows({.attention_chunk_size = 3}, 0, 6, 7),
            (Rows{"xxx....", "xxx....", "xxx....", "...xxx.", "...xxx.", "...xxx.", "......x"}));
  EXPECT_EQ(rows({.causal = true, .attention_chunk_size = 2}, 0, 4, 5),
            (Rows{"x....", "xx...", "..x..", "..xx.", "....x"}));
}

TEST(BaseMask, LookbackAddsTheChunksBefore) {
  EXPECT_EQ(
      rows({.causal = true, .attention_chunk_size = 2, .attention_chunk_lookback = 1}, 1, 6, 7),
      (Rows{"xx.....", "xxx....", "xxxx...", "..xxx..", "..xxxx.", "....xxx"}));
}

TEST(BaseMask, LookbackIsNoLookahead) {
  EXPECT_EQ(rows({.attention_chunk_size = 2, .attention_chunk_lookback = 1}, 0, 3, 6),
            (Rows{"xx....", "xx....", "xxxx..", "xxxx.."}));
}

// Position -1 is in chunk -1; a division towards zero would put it into chunk 0.
TEST(BaseMask, ChunksOfNegativePositionsRoundDown) {
  EXPECT_EQ(rows({.attention_chunk_size = 3}, -4, 0, 3), (Rows{"...", "...", "...", "...", "xxx"}));
}

TEST(BaseMask, RswaSeesThePromptAndAWindow) {
  TensorPool pool;
  const MaskSpec mask{
      .causal = true, .rswa_window = 2, .rswa_prefix_lens = pool.values(DType::kI32, {2}, {2, 0})};
  EXPECT_EQ(rows(mask, -1, 5, 6),
            (Rows{"......", "x.....", "xx....", "xxx...", "xxxx..", "xx.xx.", "xx..xx"}));
  EXPECT_EQ(rows(mask, 0, 3, 4, 1), (Rows{"x...", "xx..", ".xx.", "..xx"}));
}

TEST(BaseMask, RswaStaysCausalInsideThePrompt) {
  TensorPool pool;
  const MaskSpec mask{
      .causal = true, .rswa_window = 1, .rswa_prefix_lens = pool.values(DType::kI32, {1}, {4})};
  EXPECT_EQ(rows(mask, 0, 2, 4), (Rows{"x...", "xx..", "xxx."}));
}

// Multimodal ranges: causal unless said otherwise.
class BaseMaskRanges : public testing::Test {
 protected:
  MaskSpec with(const std::vector<double>& ends) {
    MaskSpec mask{.causal = true};
    mask.mm_prefix_ranges =
        pool_.values(DType::kI32, {1, static_cast<std::int64_t>(ends.size()) / 2, 2}, ends);
    return mask;
  }
  TensorPool pool_;
};

TEST_F(BaseMaskRanges, AreVisibleFromInsideAndInclusive) {
  EXPECT_EQ(rows(with({1, 3}), 0, 4, 5), (Rows{"x....", "xxxx.", "xxxx.", "xxxx.", "xxxxx"}));
}

TEST_F(BaseMaskRanges, OfOneTokenReversedOrNegativeArePadding) {
  EXPECT_EQ(rows(with({2, 2, 3, 1, -1, 3, -1, -1}), 0, 3, 4), rows({.causal = true}, 0, 3, 4));
}

TEST_F(BaseMaskRanges, MayBeginAtZero) {
  EXPECT_EQ(rows(with({0, 1}), 0, 2, 3), (Rows{"xx.", "xx.", "xxx"}));
}

TEST_F(BaseMaskRanges, ThatTouchStaySeparate) {
  EXPECT_EQ(rows(with({0, 1, 2, 3}), 0, 3, 4), (Rows{"xx..", "xx..", "xxxx", "xxxx"}));
}

TEST_F(BaseMaskRanges, ThatOverlapUniteForTheRowsInBoth) {
  EXPECT_EQ(rows(with({0, 2, 2, 4}), 0, 4, 5), (Rows{"xxx..", "xxx..", "xxxxx", "xxxxx", "xxxxx"}));
}

TEST_F(BaseMaskRanges, MayEndBeyondTheSequence) {
  EXPECT_EQ(rows(with({2, 900}), 1, 3, 4), (Rows{"xx..", "xxxx", "xxxx"}));
}

TEST_F(BaseMaskRanges, OpenTheWindowUnlessClamped) {
  MaskSpec mask = with({1, 4});
  mask.window_left = 1;
  EXPECT_EQ(rows(mask, 1, 5, 6), (Rows{"xxxxx.", ".xxxx.", ".xxxx.", ".xxxx.", "....xx"}));
}

TEST_F(BaseMaskRanges, ClampedKeepTheLeftBoundOnly) {
  MaskSpec mask = with({1, 4});
  mask.window_left = 1;
  mask.mm_prefix_clamp = true;
  EXPECT_EQ(rows(mask, 1, 5, 6), (Rows{"xxxxx.", ".xxxx.", "..xxx.", "...xx.", "....xx"}));
}

// Chunks of 2 hide key 1 from row 2; the range shows it, as far as the left bound reaches.
TEST_F(BaseMaskRanges, ClampedReachTheLeftBoundItself) {
  MaskSpec mask = with({1, 4});
  mask.window_left = 1;
  mask.attention_chunk_size = 2;
  mask.mm_prefix_clamp = true;
  EXPECT_EQ(rows(mask, 2, 3, 6), (Rows{".xxxx.", "..xxx."}));
}

TEST_F(BaseMaskRanges, ClampWithoutAWindowChangesNothing) {
  MaskSpec mask = with({1, 3});
  const Rows open = rows(mask, 0, 4, 5);
  mask.mm_prefix_clamp = true;
  EXPECT_EQ(rows(mask, 0, 4, 5), open);
}

TEST_F(BaseMaskRanges, OpenChunksAndTheRightBoundToo) {
  MaskSpec mask = with({1, 3});
  mask.attention_chunk_size = 2;
  EXPECT_EQ(rows(mask, 0, 4, 5), (Rows{"x....", "xxxx.", ".xxx.", ".xxx.", "....x"}));
  mask = with({1, 3});
  mask.causal = false;
  mask.window_right = 0;
  EXPECT_EQ(rows(mask, 0, 2, 5), (Rows{"x....", "xxxx.", "xxxx."}));
}

TEST_F(BaseMaskRanges, AreThoseOfTheRequest) {
  MaskSpec mask{.causal = true};
  mask.mm_prefix_ranges = pool_.values(DType::kI32, {2, 1, 2}, {0, 1, 1, 2});
  EXPECT_EQ(rows(mask, 0, 1, 3, 0), (Rows{"xx.", "xx."}));
  EXPECT_EQ(rows(mask, 0, 1, 3, 1), (Rows{"x..", "xxx"}));
}

TEST(AttnMask, AbsentAllowsEverything) { EXPECT_TRUE(attn_mask_allows({}, 5, 6, 7, 8)); }

TEST(AttnMask, IsIndexedByRequestHeadLocalRowAndKey) {
  TensorPool pool;
  std::vector<double> bits(2 * 3 * 2 * 4, 0);
  bits[((1 * 3 + 2) * 2 + 1) * 4 + 3] = 1;
  const MaskSpec mask{.attn_mask = pool.values(DType::kBool, {2, 3, 2, 4}, bits)};
  EXPECT_TRUE(attn_mask_allows(mask, 1, 2, 1, 3));
  EXPECT_FALSE(attn_mask_allows(mask, 0, 2, 1, 3));
  EXPECT_FALSE(attn_mask_allows(mask, 1, 1, 1, 3));
  EXPECT_FALSE(attn_mask_allows(mask, 1, 2, 0, 3));
  EXPECT_FALSE(attn_mask_allows(mask, 1, 2, 1, 2));
}

TEST(AttnMask, AxesOfLengthOneBroadcast) {
  TensorPool pool;
  const MaskSpec by_key{.attn_mask = pool.values(DType::kBool, {1, 1, 1, 3}, {1, 0, 1})};
  EXPECT_TRUE(attn_mask_allows(by_key, 7, 8, 9, 2));
  EXPECT_FALSE(attn_mask_allows(by_key, 7, 8, 9, 1));
  const MaskSpec by_row{.attn_mask = pool.values(DType::kBool, {1, 1, 2, 1}, {0, 1})};
  EXPECT_FALSE(attn_mask_allows(by_row, 7, 8, 0, 99));
  EXPECT_TRUE(attn_mask_allows(by_row, 7, 8, 1, 99));
}

}  // namespace
}  // namespace attn::reference
