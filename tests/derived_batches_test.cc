#include "attn/derived_batches.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "attn/error.h"
#include "attn/local_batches.h"
#include "attn/ubatch.h"
#include "attn/vllm_error.h"
#include "tests/small_batch.h"

namespace attn {
namespace {

using Batch = CommonAttentionMetadata;
using Ints = std::vector<std::int32_t>;
using enum Derivation;

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const VllmError& error) {
    return error.type() + ": " + error.what();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Unpadded, VllmDropsImagesAndPositions) {
  Batch batch = small_batch({2, 1, 0}, {4, 8, 0});
  batch.mm_req_doc_ranges = {{0, {{1, 3}}}, {2, {{1, 2}}}};
  batch.positions = {2, 3, 7};
  batch.causal_per_req = {true, false, true};
  batch.is_prefilling = {true, false, false};
  const Batch part = unpadded(batch, 3, 2, kVllm);
  Batch expected = small_batch({2, 1}, {4, 8});
  expected.causal_per_req = {true, false};
  expected.is_prefilling = {true, false};
  EXPECT_EQ(part, expected);
  expected.mm_req_doc_ranges = {{0, {{1, 3}}}};
  EXPECT_EQ(unpadded(batch, 3, 2, kFaithful), expected);
}

TEST(Unpadded, NoTokenOfItsRowsMayBeCut) {
  const Batch batch = small_batch({2, 1}, {4, 8});
  EXPECT_NO_THROW(unpadded(batch, 2, 2, kVllm));
  EXPECT_THROW(unpadded(batch, 2, 2, kFaithful), Error);
  EXPECT_THROW(unpadded(batch, 3, 3, kVllm), Error);
  EXPECT_THROW(unpadded(batch, 4, 2, kVllm), Error);
  EXPECT_THROW(unpadded(batch, 3, -1, kVllm), Error);
}

TEST(FastPrefill, KeepsTheWantedRows) {
  Batch batch = with_logits(small_batch({3, 2, 1}, {3, 9, 7}), {2, 3, 4}, 2);
  batch.mm_req_doc_ranges = {{1, {{2, 8}}}};
  batch.causal = false;
  const auto wanted = fast_prefill(batch, kVllm);
  ASSERT_TRUE(wanted.has_value());
  EXPECT_EQ(wanted->query_start_loc, (Ints{0, 1, 3, 3}));
  EXPECT_EQ(wanted->num_actual_tokens, 3);
  EXPECT_EQ(wanted->max_query_len, 2);
  EXPECT_EQ(wanted->seq_lens, batch.seq_lens);
  EXPECT_TRUE(wanted->causal);
  EXPECT_FALSE(wanted->mm_req_doc_ranges.has_value());
  const auto faithful = fast_prefill(batch, kFaithful);
  EXPECT_EQ(faithful->mm_req_doc_ranges, batch.mm_req_doc_ranges);
  EXPECT_FALSE(faithful->causal);
  EXPECT_EQ(faithful->query_start_loc, (Ints{0, 1, 3, 3}));
}

TEST(FastPrefill, OnlyTheLastTokensOfARowAreRowsOfABatch) {
  const Batch batch = small_batch({3, 2}, {3, 9});
  EXPECT_NO_THROW(fast_prefill(with_logits(batch, {1, 4}, 1), kVllm));
  EXPECT_EQ(error_of([&] {
              fast_prefill(with_logits(batch, {1, 4}, 1), kFaithful);
            }),
            "logits_indices_padded[0] is 1, must be 2: only the last tokens of row 0 are rows of a "
            "batch");
  EXPECT_NE(error_of([&] { fast_prefill(with_logits(batch, {4, 3}, 2), kFaithful); }), "");
  EXPECT_NE(error_of([&] { fast_prefill(with_logits(batch, {4, 2}, 2), kFaithful); }), "");
}

TEST(FastPrefill, LeavesBatchesThatNeedNothing) {
  EXPECT_FALSE(fast_prefill(small_batch({3}, {3}), kVllm).has_value());
  EXPECT_FALSE(fast_prefill(with_logits(small_batch({1, 1}, {3, 4}), {1}, 1), kVllm).has_value());
  Batch batch = with_logits(small_batch({3}, {3}), {2}, 1);
  batch.max_logits_per_req.reset();
  EXPECT_EQ(error_of([&] { fast_prefill(batch, kVllm); }),
            "AssertionError: max_logits_per_req is missing");
}

// The example in vLLM's own description of the function.
TEST(LocalBatch, ChunksOfFourTokens) {
  const Batch batch = small_batch({4, 10, 5}, {6, 17, 9}, 5);
  const LocalBatch local = make_local_batch(batch, 4, 2, kVllm);
  EXPECT_EQ(local.batch.query_start_loc, (Ints{0, 2, 4, 5, 9, 13, 14, 18, 19}));
  EXPECT_EQ(local.batch.seq_lens, (Ints{4, 2, 4, 4, 4, 1, 4, 1}));
  EXPECT_EQ(local.batch.seq_lens_cpu_upper_bound, local.batch.seq_lens);
  EXPECT_EQ(local.batch.max_query_len, 4);
  EXPECT_EQ(local.batch.block_table.width, 2);
  // Row 1 has keys 0..16 in the blocks 5..9, two keys each: its chunks start at the keys 4, 8,
  // 12, 16.
  EXPECT_EQ(local.batch.block_table.entries,
            (Ints{0, 1, 2, 3, 7, 8, 9, 9, 9, 9, 9, 9, 12, 13, 14, 14}));
}

TEST(LocalBatch, RefusesWhatHasNoChunks) {
  EXPECT_EQ(error_of([] { make_local_batch(small_batch({1}, {1}), 6, 4, kVllm); }),
            "AssertionError: attn_chunk_size 6 is not divisible by block_size 4");
  EXPECT_THROW(make_local_batch(small_batch({0}, {0}), 4, 4, kVllm), Error);
  EXPECT_THROW(make_local_batch(small_batch({2}, {1}), 4, 4, kVllm), Error);
  EXPECT_THROW(make_local_batch(small_batch({1}, {1}, 0), 4, 4, kVllm), Error);
  EXPECT_THROW(make_local_batch(small_batch({1}, {1}), 4, 0, kVllm), Error);
  EXPECT_THROW(make_local_batch(small_batch({1}, {1}), 1 << 30, 1, kVllm), Error);
  const LocalBatch local = make_local_batch(small_batch({1, 1}, {1, 1}), 4, 4, kVllm);
  EXPECT_THROW(local.blocks.remap({1, {1, 2, 3}}), Error);
}

TEST(UBatch, SlicesShareARowThatIsCut) {
  const UBatchSlices slices = create_ubatch_slices(Ints{5, 1, 3, 1}, 11, 5, 2, std::nullopt);
  EXPECT_EQ(slices.slices, (std::vector<UBatchSlice>{{0, 1, 0, 5}, {1, 4, 5, 10}}));
  EXPECT_EQ(slices.padded, (std::vector<UBatchSlice>{{0, 1, 0, 5}, {1, 5, 5, 11}}));
  const UBatchSlices cut = create_ubatch_slices(Ints{4, 1, 5}, 10, 3, 2, Ints{3});
  EXPECT_EQ(cut.slices, (std::vector<UBatchSlice>{{0, 1, 0, 3}, {0, 3, 3, 10}}));
  EXPECT_EQ(error_of([] { create_ubatch_slices(Ints{4}, 10, 1, 1, Ints{}); }), "");
  EXPECT_THROW(create_ubatch_slices(Ints{4}, 10, 1, 0, std::nullopt), Error);
  EXPECT_THROW(create_ubatch_slices(Ints{-1}, 10, 1, 1, std::nullopt), Error);
  EXPECT_THROW(create_ubatch_slices(Ints{2147483647, 1}, 10, 1, 1, std::nullopt), Error);
  EXPECT_TRUE(is_last_ubatch_empty(5, 10, 2));
  EXPECT_FALSE(is_last_ubatch_empty(6, 10, 2));
}

TEST(UBatch, ACutRowIsShorter) {
  Batch batch = small_batch({4, 5}, {39, 5});
  batch.positions = {35, 36, 37, 38, 0, 1, 2, 3, 4};
  const Batch first = split_batch({0, 1, 0, 3}, batch, kVllm);
  EXPECT_EQ(first.query_start_loc, (Ints{0, 3}));
  EXPECT_EQ(first.seq_lens, (Ints{38}));
  EXPECT_EQ(first.seq_lens_cpu_upper_bound, (Ints{38}));
  EXPECT_EQ(first.max_seq_len, 39);
  EXPECT_EQ(first.positions, (std::vector<std::int64_t>{35, 36, 37}));
  const Batch second = split_batch({0, 2, 3, 8}, batch, kVllm);
  EXPECT_EQ(second.query_start_loc, (Ints{0, 1, 5}));
  EXPECT_EQ(second.seq_lens, (Ints{39, 4}));
  EXPECT_EQ(second.slot_mapping, (std::vector<std::int64_t>{3, 4, 5, 6, 7}));
  EXPECT_EQ(second.max_query_len, 4);
}

TEST(UBatch, RefusesWhatIsNoSlice) {
  Batch batch = small_batch({4, 5}, {39, 5});
  EXPECT_EQ(error_of([&] {
              split_batch({1, 1, 4, 9}, batch, kVllm);
            }),
            "AssertionError: Ubatch slice UBatchSlice(request_slice=slice(1, 1, None), "
            "token_slice=slice(4, 9, None)) is empty");
  EXPECT_EQ(error_of([&] {
              split_batch({1, 2, 3, 9}, batch, kVllm);
            }),
            "AssertionError: Token slice start outside of first request");
  EXPECT_EQ(error_of([&] {
              split_batch({0, 2, 4, 9}, batch, kVllm);
            }),
            "AssertionError: Token slice start outside of first request");
  EXPECT_THROW(split_batch({0, 3, 0, 9}, batch, kVllm), Error);
  EXPECT_THROW(split_batch({-1, 1, 0, 3}, batch, kVllm), Error);
  EXPECT_THROW(split_batch({0, 1, 0, 10}, batch, kVllm), Error);
  EXPECT_THROW(split_batch({0, 2, 0, 3}, batch, kVllm), Error);  // ends before row 1
  // A last row without a token is padding.
  EXPECT_EQ(split_batch({0, 2, 0, 4}, batch, kVllm).query_start_loc, (Ints{0, 4, 4}));
  batch.seq_lens_cpu_upper_bound.reset();
  EXPECT_EQ(error_of([&] {
              split_batch({0, 1, 0, 3}, batch, kVllm);
            }),
            "AssertionError: seq_lens_cpu_upper_bound is missing");
}

TEST(Faithful, RefusesFieldsThatChunksAndCutsHaveNoFormOf) {
  Batch batch = small_batch({4}, {8}, 9);
  batch.dcp_local_seq_lens = Ints{4};
  EXPECT_THROW(split_batch({0, 1, 0, 3}, batch, kFaithful), Error);
  EXPECT_NO_THROW(split_batch({0, 1, 0, 4}, batch, kFaithful));
  EXPECT_THROW(make_local_batch(batch, 4, 2, kFaithful), Error);
  batch.dcp_local_seq_lens.reset();
  batch.rswa_prefix_lens = Ints{4};
  EXPECT_THROW(make_local_batch(batch, 4, 2, kFaithful), Error);
  EXPECT_EQ(split_batch({0, 1, 0, 3}, batch, kFaithful).rswa_prefix_lens, (Ints{4}));
  batch.rswa_prefix_lens.reset();
  batch.encoder_seq_lens = Ints{4};
  EXPECT_THROW(make_local_batch(batch, 4, 2, kFaithful), Error);
  batch.encoder_seq_lens.reset();
  batch.req_idx = Ints{6};
  EXPECT_EQ(make_local_batch(batch, 4, 2, kFaithful).batch.req_idx, (Ints{6}));
}

}  // namespace
}  // namespace attn
