#include "attn/decode_split.h"

#include <gtest/gtest.h>

#include "attn/batch_reorder.h"
#include "attn/context_parallel.h"
#include "attn/error.h"
#include "attn/vllm_error.h"
#include "tests/small_batch.h"

namespace attn {
namespace {

using Ints = std::vector<std::int32_t>;

DecodeSplit split(const Ints& query_lens, const DecodeSplitOptions& options) {
  return split_decodes_and_prefills(small_batch(query_lens, Ints(query_lens.size(), 99)), options);
}

TEST(DecodeSplit, TheFirstLongRowAndAllBehindItArePrefills) {
  EXPECT_EQ(split({1, 1, 1}, {}), (DecodeSplit{3, 0, 3, 0}));
  EXPECT_EQ(split({1, 0, 2, 1}, {}), (DecodeSplit{2, 2, 1, 3}));
  EXPECT_EQ(split({2, 1}, {}), (DecodeSplit{0, 2, 0, 3}));
  EXPECT_EQ(split({3, 3, 4, 1}, {.decode_threshold = 3}), (DecodeSplit{2, 2, 6, 5}));
  EXPECT_EQ(split({}, {}), (DecodeSplit{0, 0, 0, 0}));
}

TEST(DecodeSplit, UniformDecodesAreAsLongAsTheFirst) {
  const DecodeSplitOptions uniform = {.decode_threshold = 3, .require_uniform = true};
  EXPECT_EQ(split({2, 2, 0}, uniform), (DecodeSplit{3, 0, 4, 0}));
  EXPECT_EQ(split({2, 1, 2}, uniform), (DecodeSplit{1, 2, 2, 3}));
}

TEST(DecodeSplit, ShortExtendsMayBePrefills) {
  CommonAttentionMetadata batch = small_batch({1, 1, 1}, {9, 9, 9});
  const DecodeSplitOptions options = {.treat_short_extends_as_decodes = false};
  EXPECT_THROW(split_decodes_and_prefills(batch, options), VllmError);
  batch.is_prefilling = {false, true, false};
  EXPECT_EQ(split_decodes_and_prefills(batch, options), (DecodeSplit{1, 2, 1, 2}));
  EXPECT_EQ(split_decodes_and_prefills(batch, {}), (DecodeSplit{3, 0, 3, 0}));
}

TEST(DecodeSplit, ABatchOfOtherSizesIsAnError) {
  CommonAttentionMetadata batch = small_batch({1, 1}, {1, 1});
  batch.query_start_loc_cpu.pop_back();
  EXPECT_THROW(split_decodes_and_prefills(batch, {}), Error);
  EXPECT_THROW(split_decodes_prefills_and_extends(batch, 1), Error);
}

TEST(ExtendSplit, PrefillsAreRowsWithoutContext) {
  CommonAttentionMetadata batch = small_batch({1, 1, 4, 5, 6}, {7, 9, 30, 5, 6});
  EXPECT_EQ(split_decodes_prefills_and_extends(batch, 1), (ExtendSplit{2, 1, 2, 2, 4, 11}));
  batch.seq_lens_cpu_upper_bound = Ints{7, 9, 30, 35, 36};
  EXPECT_EQ(split_decodes_prefills_and_extends(batch, 1), (ExtendSplit{2, 3, 0, 2, 15, 0}));
  EXPECT_EQ(split_decodes_prefills_and_extends(batch, 6), (ExtendSplit{5, 0, 0, 17, 0, 0}));
  batch.seq_lens_cpu_upper_bound.reset();
  EXPECT_THROW(split_decodes_prefills_and_extends(batch, 1), VllmError);
}

TEST(ExtendSplit, ALooseMaximumHidesDecodes) {
  CommonAttentionMetadata batch = small_batch({1, 1}, {7, 9});
  batch.max_query_len = 2;
  EXPECT_EQ(split_decodes_prefills_and_extends(batch, 1), ExtendSplit{});
}

TEST(ContextSplit, WithoutBoundsAllRowsAreExtends) {
  const Ints starts = {0, 1, 8};
  EXPECT_EQ(split_dcp_context_queries(starts, std::nullopt, 7, 8), (ContextSplit{0, 2, 0, 8}));
  EXPECT_EQ(split_dcp_context_queries(starts, Ints{4, 9}, 7, 8), (ContextSplit{1, 1, 1, 7}));
  EXPECT_EQ(split_dcp_context_queries(starts, Ints{4, 7}, 7, 8), (ContextSplit{1, 0, 1, 0}));
  EXPECT_EQ(split_dcp_context_queries(starts, std::nullopt, 1, 9), (ContextSplit{2, 0, 9, 0}));
  EXPECT_THROW(split_dcp_context_queries(starts, Ints{4}, 7, 8), Error);
  EXPECT_THROW(split_dcp_context_queries(Ints{}, std::nullopt, 7, 8), Error);
  EXPECT_THROW(split_dcp_context_queries(Ints{0, 3, 2}, std::nullopt, 7, 8), Error);
  EXPECT_THROW(split_dcp_context_queries(starts, std::nullopt, 7, 7), Error);
}

TEST(PrefillChunks, FillTheWorkspaceAndNoMore) {
  using Chunks = std::vector<RowRange>;
  EXPECT_EQ(split_prefill_chunks(Ints{4, 4, 4, 8, 1}, 8, 0),
            (Chunks{{0, 2}, {2, 3}, {3, 4}, {4, 5}}));
  EXPECT_EQ(split_prefill_chunks(Ints{4, 4}, 8, 3), (Chunks{{3, 5}}));
  EXPECT_EQ(split_prefill_chunks(Ints{}, 8, 3), Chunks{});
  EXPECT_THROW(split_prefill_chunks(Ints{4, 9}, 8, 0), VllmError);
}

TEST(UniformDecode, TokensAreRowsTimesLength) {
  EXPECT_TRUE(is_uniform_decode(3, 6, 2));
  EXPECT_FALSE(is_uniform_decode(3, 5, 2));
  EXPECT_FALSE(is_uniform_decode(0, 0, 2));
  EXPECT_FALSE(is_uniform_decode(65536, 0, 65536));  // 2^32 is not 0
  EXPECT_EQ(uniform_token_count(3, 6, 2, true), 2);
  EXPECT_EQ(uniform_token_count(3, 6, 2, false), std::nullopt);
}

TEST(BatchReorder, DecodesShortExtendsLongExtendsPrefills) {
  // A prefill, a decode, a long extend, a short extend, a decode; the first decode is in place.
  const Ints scheduled = {5, 1, 4, 1, 1};
  const Ints computed = {0, 9, 2, 3, 8};
  const Ints prompt = {5, 9, 9, 9, 8};
  const BatchReorder reorder = reorder_batch({scheduled, computed, prompt}, 1);
  EXPECT_EQ(reorder.order, (Ints{4, 1, 3, 2, 0}));
  EXPECT_TRUE(reorder.changed());
}

TEST(BatchReorder, RequestsThatMoveKeepTheirOrder) {
  // Two prefills before two decodes.
  const BatchReorder reorder =
      reorder_batch({Ints{5, 5, 1, 1}, Ints{0, 0, 9, 9}, Ints{5, 5, 9, 9}}, 1);
  EXPECT_EQ(reorder.order, (Ints{2, 3, 0, 1}));
}

TEST(BatchReorder, RequestsInPlaceStay) {
  // Regions 0 3 0 3: only positions 1 and 2 change.
  const BatchReorder reorder =
      reorder_batch({Ints{1, 5, 1, 5}, Ints{9, 0, 9, 0}, Ints{9, 5, 9, 5}}, 1);
  EXPECT_EQ(reorder.order, (Ints{0, 2, 1, 3}));
  ASSERT_EQ(reorder.swaps.size(), 1U);
  const BatchReorder none = reorder_batch({Ints{1, 5}, Ints{9, 0}, Ints{9, 5}}, 1);
  EXPECT_FALSE(none.changed());
  EXPECT_EQ(none.order, (Ints{0, 1}));
  EXPECT_THROW(reorder_batch({Ints{1}, Ints{9, 0}, Ints{9, 5}}, 1), Error);
}

// Token t of a sequence lies on rank t / interleave mod size.
TEST(ContextParallel, EveryTokenIsOnOneRank) {
  for (std::int32_t seq_len = 0; seq_len < 40; ++seq_len) {
    for (const std::int32_t size : {1, 2, 3, 8}) {
      for (const std::int32_t interleave : {1, 2, 5}) {
        Ints expected(static_cast<std::size_t>(size));
        for (std::int32_t t = 0; t < seq_len; ++t) {
          ++expected[static_cast<std::size_t>(t / interleave % size)];
        }
        for (std::int32_t rank = 0; rank < size; ++rank) {
          EXPECT_EQ(dcp_local_seq_len(seq_len, size, rank, interleave),
                    expected[static_cast<std::size_t>(rank)])
              << seq_len << " " << size << " " << rank << " " << interleave;
        }
      }
    }
  }
  EXPECT_EQ(dcp_local_seq_lens(Ints{5, 0, 6}, 2, 1, 2), (Ints{2, 0, 2}));
  EXPECT_EQ(dcp_local_seq_len(2147483647, 2, 0, 1), 1073741824);
}

TEST(ContextParallel, RefusesWhatIsNoRank) {
  EXPECT_THROW(dcp_local_seq_len(1, 2, 2, 1), Error);
  EXPECT_THROW(dcp_local_seq_len(1, 2, -1, 1), Error);
  EXPECT_THROW(dcp_local_seq_len(1, 0, 0, 1), Error);
  EXPECT_THROW(dcp_local_seq_len(1, 1, 0, 0), Error);
  EXPECT_THROW(dcp_local_seq_len(-1, 1, 0, 1), Error);
}

}  // namespace
}  // namespace attn
