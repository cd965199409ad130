#include "attn/image_spans.h"

#include <gtest/gtest.h>

#include "attn/error.h"
#include "attn/shared_prefix.h"
#include "tests/small_batch.h"

namespace attn {
namespace {

using Ints = std::vector<std::int32_t>;
using Ranges = std::vector<ImageRange>;
using Rows = std::vector<RowImages>;
using Features = std::vector<std::vector<PromptFeature>>;

TEST(ImageSpans, OnlyImagesAndVideosAreRanges) {
  const Features features = {{{"image", 2, 3, std::nullopt}, {"audio", 6, 3, std::nullopt}},
                             {},
                             {{"video", 0, 4, std::vector<bool>{true, false, true, true}}}};
  EXPECT_EQ(mm_prefix_ranges(features, {}), (Rows{{0, {{2, 4}}}, {1, {}}, {2, {{0, 0}, {2, 3}}}}));
}

TEST(ImageSpans, PaddingMovesTheStart) {
  const Features features = {{{"image", 9, 8, std::nullopt}}};
  EXPECT_EQ(mm_prefix_ranges(features, {.span_pad = 4}), (Rows{{0, {{11, 16}}}}));
  EXPECT_EQ(mm_prefix_ranges(features, {.span_pad = 1}), (Rows{{0, {{9, 16}}}}));
}

TEST(ImageSpans, AnImageLongerThanAnUnclampedWindowIsNone) {
  const Features features = {{{"image", 0, 4, std::nullopt}, {"image", 4, 5, std::nullopt}}};
  EXPECT_EQ(mm_prefix_ranges(features, {.sliding_window = 4}), (Rows{{0, {{0, 3}}}}));
  EXPECT_EQ(mm_prefix_ranges(features, {.sliding_window = 4, .clamp_sliding_window = true}),
            (Rows{{0, {{0, 3}, {4, 8}}}}));
}

TEST(ImageSpans, RefusesWhatIsNoFeature) {
  const auto one = [](PromptFeature feature) {
    const Features features = {{std::move(feature)}};
    return mm_prefix_ranges(features, {});
  };
  EXPECT_THROW(one({"image", -1, 3, std::nullopt}), Error);
  EXPECT_THROW(one({"image", 1, -3, std::nullopt}), Error);
  EXPECT_THROW(one({"image", 2147483647, 1, std::nullopt}), Error);
  EXPECT_THROW(one({"image", 0, 3, std::vector<bool>{true}}), Error);
  EXPECT_THROW(mm_prefix_ranges(Features{}, {.span_pad = -1}), Error);
}

TEST(ImageSpans, TokensOfAStepInTheirImages) {
  // Row 0 schedules positions 4..6, row 1 position 9.
  const Ints starts = {0, 3, 4};
  const Ints seq_lens = {7, 10};
  EXPECT_EQ(mm_prefix_query_ranges(Rows{{0, {{2, 4}, {6, 9}}}, {1, {{10, 12}}}}, starts, seq_lens),
            (Ranges{{2, 4}, kNoImage, {6, 9}, kNoImage}));
  EXPECT_TRUE(mm_prefix_query_ranges(Rows{{1, {{10, 12}, {9, 9}}}}, starts, seq_lens).empty());
  EXPECT_TRUE(mm_prefix_query_ranges(std::nullopt, starts, seq_lens).empty());
  EXPECT_THROW(mm_prefix_query_ranges(Rows{{2, {}}}, starts, seq_lens), Error);
  EXPECT_THROW(mm_prefix_query_ranges(Rows{{-1, {}}}, starts, seq_lens), Error);
  EXPECT_THROW(mm_prefix_query_ranges(Rows{}, Ints{0, 3}, seq_lens), Error);
}

TEST(ImageSpans, PaddedRangesHaveOneLength) {
  EXPECT_EQ(padded_ranges(Rows{{1, {{1, 2}, {4, 5}}}}, 2),
            (std::vector<Ranges>{{{0, 0}, {0, 0}}, {{1, 2}, {4, 5}}}));
  EXPECT_EQ(padded_ranges(Rows{{0, {{0, 0}}}, {1, {}}}, 2), std::nullopt);
  EXPECT_EQ(padded_ranges(std::nullopt, 2), std::nullopt);
}

CommonAttentionMetadata with_tables(CommonAttentionMetadata batch, Ints entries) {
  batch.block_table.entries = std::move(entries);
  return batch;
}

TEST(SharedPrefix, WholeBlocksThatAllRowsHave) {
  const auto batch = with_tables(small_batch({1, 2}, {17, 18}, 4), {5, 6, 7, 1, 5, 6, 7, 2});
  EXPECT_EQ(shared_prefix_len(batch, 4), 12);
  EXPECT_EQ(shared_prefix_len(batch, 8), 16);  // the shorter context holds two of three blocks
  EXPECT_THROW(shared_prefix_len(batch, 0), Error);
}

TEST(SharedPrefix, HoldsNoQueryToken) {
  // Row 1 has 3 tokens of 5: a context of 2.
  const auto batch = with_tables(small_batch({1, 3}, {9, 5}, 2), {5, 6, 5, 6});
  EXPECT_EQ(shared_prefix_len(batch, 1), 2);
  EXPECT_EQ(shared_prefix_len(batch, 2), 2);
  EXPECT_EQ(shared_prefix_len(batch, 4), 0);
  EXPECT_EQ(cascade_refusal(batch, 4, {}),
            "common prefix 4 is longer than the context of row 1, 2");
  EXPECT_EQ(cascade_refusal(batch, 2, {}), std::nullopt);
  EXPECT_EQ(cascade_refusal(batch, 0, {}), "no common prefix");
  const auto three = with_tables(small_batch({1, 3}, {9, 6}, 2), {5, 6, 5, 6});
  EXPECT_EQ(shared_prefix_len(three, 4), 0);  // a context of 3
  EXPECT_EQ(shared_prefix_len(three, 3), 3);
}

TEST(SharedPrefix, PaddingRowsDoNotCount) {
  const auto batch = with_tables(small_batch({0, 1, 1}, {0, 9, 9}, 2), {0, 0, 5, 6, 5, 7});
  EXPECT_EQ(shared_prefix_len(batch, 4), 4);
  EXPECT_EQ(cascade_refusal(batch, 4, {}), std::nullopt);
  EXPECT_EQ(shared_prefix_len(small_batch({0}, {0}), 4), 0);
}

TEST(SharedPrefix, LayersThatCannotCascade) {
  auto batch = with_tables(small_batch({1, 1}, {9, 9}, 2), {5, 6, 5, 7});
  EXPECT_EQ(cascade_refusal(batch, 4, {.sliding_window = true}), "sliding window");
  EXPECT_EQ(cascade_refusal(batch, 4, {.alibi = true}), "ALiBi");
  EXPECT_EQ(cascade_refusal(batch, 4, {.dcp_size = 2}), "decode context parallel size 2");
  batch.mm_req_doc_ranges = Rows{{0, {{3, 3}}}};
  EXPECT_EQ(cascade_refusal(batch, 4, {}), std::nullopt);  // a void range shows nothing
  batch.mm_req_doc_ranges = Rows{{0, {{3, 4}}}};
  EXPECT_EQ(cascade_refusal(batch, 4, {}), "image ranges");
  batch.rswa_prefix_lens = Ints{0, 0};
  EXPECT_EQ(cascade_refusal(batch, 4, {}), "R-SWA");
}

}  // namespace
}  // namespace attn
