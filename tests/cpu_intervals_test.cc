#include "optimized/cpu/intervals.h"

#include <gtest/gtest.h>

#include <vector>

namespace attn::cpu {
namespace {

using Intervals = std::vector<KeyInterval>;

Intervals row(const MaskSpec& mask, std::int64_t seq_len, std::int64_t q) {
  Intervals storage(static_cast<std::size_t>(BaseMask::max_intervals(mask)));
  const auto found = BaseMask(mask, 0, seq_len).row(q, storage.data());
  return {found.begin(), found.end()};
}

TEST(CpuIntervals, RowsBeforePositionZeroBelongToTheChunkBeforeTheFirst) {
  MaskSpec mask;
  mask.attention_chunk_size = 4;
  mask.attention_chunk_lookback = 1;
  EXPECT_EQ(row(mask, 10, -1), Intervals{});
  EXPECT_EQ(row(mask, 10, 0), (Intervals{{0, 4}}));
  EXPECT_EQ(row(mask, 10, 9), (Intervals{{4, 10}}));
}

TEST(CpuIntervals, SinkTokensKeepTheFrontOfTheChunkOnly) {
  MaskSpec mask;
  mask.causal = true;
  mask.window_left = 1;
  mask.sink_token_length = 6;
  EXPECT_EQ(row(mask, 20, 15), (Intervals{{0, 6}, {14, 16}}));
  EXPECT_EQ(row(mask, 20, 6), (Intervals{{0, 7}}));
  mask.attention_chunk_size = 5;
  mask.attention_chunk_lookback = 2;
  EXPECT_EQ(row(mask, 20, 15), (Intervals{{5, 6}, {14, 16}}));
}

TEST(CpuIntervals, BoundsBeyondAnyPositionDoNotOverflow) {
  MaskSpec mask;
  mask.window_left = INT64_MAX;
  mask.window_right = INT64_MAX;
  mask.attention_chunk_size = INT64_MAX;
  mask.attention_chunk_lookback = INT64_MAX;
  mask.sink_token_length = INT64_MAX;
  EXPECT_EQ(row(mask, 10, 3), (Intervals{{0, 10}}));
  mask.attention_chunk_size = 3;
  EXPECT_EQ(row(mask, 10, 3), (Intervals{{0, 6}}));
  EXPECT_EQ(row(mask, 10, -5), Intervals{});
}

TEST(CpuIntervals, BitsAndNextFollowTheIntervals) {
  const Intervals intervals = {{0, 2}, {60, 70}, {128, 129}};
  RowKeys keys{intervals};
  EXPECT_EQ(keys.bits(0), 0xF000000000000003u);
  EXPECT_EQ(keys.next(2), 60);
  EXPECT_EQ(keys.next(64), 64);
  EXPECT_EQ(keys.bits(64), 0x3Fu);
  EXPECT_EQ(keys.next(70), 128);
  EXPECT_EQ(keys.bits(128), 1u);
  EXPECT_EQ(keys.next(129), RowKeys::kNone);
  EXPECT_EQ(keys.bits(192), 0u);
}

}  // namespace
}  // namespace attn::cpu
