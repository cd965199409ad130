// The keys that every token of a batch sees, before and after a faithful derivation.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "attn/derived_batches.h"
#include "attn/error.h"
#include "attn/local_batches.h"
#include "attn/ubatch.h"
#include "tests/small_batch.h"

namespace attn {
namespace {

using Batch = CommonAttentionMetadata;
using Ints = std::vector<std::int32_t>;
using enum Derivation;

// As physical slots of the block table. Written after the definition in attn/mask.h, with chunks
// when chunk_size is not 0.
constexpr std::int32_t kBlockSize = 2;
using Slots = std::set<std::int64_t>;

bool in_one_image(const Batch& batch, std::int32_t row, std::int64_t q, std::int64_t k) {
  if (!batch.mm_req_doc_ranges) return false;
  for (const RowImages& images : *batch.mm_req_doc_ranges) {
    if (images.row != row) continue;
    for (const ImageRange& range : images.ranges) {
      const bool holds_q = range.start <= q && q <= range.end;
      const bool holds_k = range.start <= k && k <= range.end;
      if (range.start < range.end && holds_q && holds_k) return true;
    }
  }
  return false;
}

std::vector<Slots> seen_slots(const Batch& batch, std::int64_t chunk_size = 0) {
  std::vector<Slots> seen;
  for (std::int32_t row = 0; row < batch.num_reqs; ++row) {
    const auto r = static_cast<std::size_t>(row);
    const bool causal = batch.causal_per_req ? (*batch.causal_per_req)[r] : batch.causal;
    const std::int32_t seq_len = batch.seq_lens[r];
    for (std::int64_t q = seq_len - batch.query_len(row); q < seq_len; ++q) {
      seen.emplace_back();
      for (std::int64_t k = 0; k < seq_len; ++k) {
        const bool in_chunk = chunk_size == 0 || q / chunk_size == k / chunk_size;
        if (!((!causal || k <= q) && in_chunk) && !in_one_image(batch, row, q, k)) continue;
        const auto column = static_cast<std::size_t>(k / kBlockSize);
        seen.back().insert(std::int64_t{batch.block_table.row(row)[column]} * kBlockSize +
                           k % kBlockSize);
      }
    }
  }
  return seen;
}

class RandomBatches {
 public:
  explicit RandomBatches(std::uint32_t seed) : random_(seed) {}

  std::int32_t below(std::int32_t n) {
    return static_cast<std::int32_t>(random_() % static_cast<std::uint32_t>(n));
  }

  Batch batch() {
    Ints query_lens;
    Ints seq_lens;
    const std::int32_t num_reqs = 1 + below(4);
    for (std::int32_t row = 0; row < num_reqs; ++row) {
      query_lens.push_back(below(4) == 0 ? 0 : 1 + below(8));
      seq_lens.push_back(std::max(query_lens.back() + below(9), 1));
    }
    Batch batch = small_batch(query_lens, seq_lens, 9);
    std::shuffle(batch.block_table.entries.begin(), batch.block_table.entries.end(), random_);
    if (below(3) == 0) batch.causal = false;
    if (below(3) == 0) {
      batch.causal_per_req.emplace();
      for (std::int32_t row = 0; row < num_reqs; ++row) batch.causal_per_req->push_back(below(2));
    }
    if (below(5) == 0) return batch;
    batch.mm_req_doc_ranges.emplace();
    for (std::int32_t row = num_reqs - 1; row >= 0; --row) {
      if (below(3) != 0) batch.mm_req_doc_ranges->push_back({row, images()});
    }
    return batch;
  }

 private:
  std::vector<ImageRange> images() {
    std::vector<ImageRange> ranges;
    for (std::int32_t start = below(6); start < 16; start += 1 + below(5)) {
      const std::int32_t end = start - 1 + below(6);
      ranges.push_back({start, end});
      start = std::max(start, end);
    }
    return ranges;
  }

  std::mt19937 random_;
};

constexpr int kRounds = 4000;

TEST(SeenKeys, UnpaddedKeepsThem) {
  RandomBatches random(1);
  for (int round = 0; round < kRounds; ++round) {
    const Batch batch = random.batch();
    const std::int32_t num_reqs = random.below(batch.num_reqs + 1);
    const std::int32_t num_tokens = batch.query_start_loc[static_cast<std::size_t>(num_reqs)];
    const Batch part = unpadded(batch, num_tokens, num_reqs, kFaithful);
    validate(part);
    std::vector<Slots> expected = seen_slots(batch);
    expected.resize(static_cast<std::size_t>(num_tokens));
    ASSERT_EQ(seen_slots(part), expected) << "round " << round;
  }
}

TEST(SeenKeys, FastPrefillKeepsThem) {
  RandomBatches random(2);
  int derived = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Batch plain = random.batch();
    Ints indices;
    std::int32_t longest = 0;
    for (std::int32_t row = 0; row < plain.num_reqs; ++row) {
      const std::int32_t count = random.below(plain.query_len(row) + 1);
      longest = std::max(longest, count);
      const std::int32_t past = plain.query_start_loc[static_cast<std::size_t>(row) + 1];
      for (std::int32_t left = count; left > 0; --left) indices.push_back(past - left);
    }
    const Batch batch = with_logits(plain, indices, longest);
    const auto wanted = fast_prefill(batch, kFaithful);
    if (!wanted) continue;
    ++derived;
    validate(*wanted);
    const std::vector<Slots> before = seen_slots(batch);
    std::vector<Slots> expected;
    for (const std::int32_t i : indices) expected.push_back(before[static_cast<std::size_t>(i)]);
    ASSERT_EQ(seen_slots(*wanted), expected) << "round " << round;
  }
  EXPECT_GT(derived, kRounds / 2);
}

TEST(SeenKeys, LocalBatchesKeepThemOrSayThatTheyCannot) {
  RandomBatches random(3);
  int refused = 0;
  int with_images = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Batch batch = random.batch();
    const std::int32_t chunk_size = kBlockSize * (1 + random.below(5));
    const std::vector<Slots> expected = seen_slots(batch, chunk_size);
    Batch without_images = batch;
    without_images.mm_req_doc_ranges.reset();
    const std::vector<Slots> chunk_alone = seen_slots(without_images, chunk_size);
    Batch whole = without_images;
    whole.causal = false;
    whole.causal_per_req.reset();
    const std::vector<Slots> own_chunk = seen_slots(whole, chunk_size);
    bool leaves_chunk = false;
    for (std::size_t t = 0; t < expected.size(); ++t) {
      leaves_chunk = leaves_chunk || !std::includes(own_chunk[t].begin(), own_chunk[t].end(),
                                                    expected[t].begin(), expected[t].end());
    }
    if (leaves_chunk) {
      ++refused;
      ASSERT_THROW(make_local_batch(batch, chunk_size, kBlockSize, kFaithful), Error) << round;
      continue;
    }
    if (expected != chunk_alone) ++with_images;
    const LocalBatch local = make_local_batch(batch, chunk_size, kBlockSize, kFaithful);
    validate(local.batch);
    ASSERT_EQ(seen_slots(local.batch), expected) << "round " << round;
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(with_images, 100);
}

TEST(SeenKeys, UBatchesKeepThemOrSayThatTheyCannot) {
  RandomBatches random(4);
  int refused = 0;
  int cut_with_images = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Batch batch = random.batch();
    if (batch.num_actual_tokens < 2) continue;
    Ints query_lens;
    for (std::int32_t row = 0; row < batch.num_reqs; ++row)
      query_lens.push_back(batch.query_len(row));
    const std::int32_t point = 1 + random.below(batch.num_actual_tokens - 1);
    const UBatchSlices slices =
        create_ubatch_slices(query_lens, batch.num_actual_tokens, batch.num_reqs, 2, Ints{point});
    const std::vector<Slots> before = seen_slots(batch);
    for (const UBatchSlice& slice : slices.slices) {
      // A row that is cut lacks the keys of its tokens behind the cut.
      const auto last = static_cast<std::size_t>(slice.past_row) - 1;
      const std::int32_t cut = std::max(batch.query_start_loc[last + 1] - slice.past_token, 0);
      Slots lost;
      for (std::int32_t k = batch.seq_lens[last] - cut; k < batch.seq_lens[last]; ++k) {
        const std::int64_t block =
            batch.block_table.row(slice.past_row - 1)[static_cast<std::size_t>(k / kBlockSize)];
        lost.insert(block * kBlockSize + k % kBlockSize);
      }
      std::vector<Slots> expected(before.begin() + slice.first_token,
                                  before.begin() + slice.past_token);
      bool loses = false;
      for (const Slots& seen : expected) {
        for (const std::int64_t slot : lost) loses = loses || seen.contains(slot);
      }
      if (loses) {
        ++refused;
        ASSERT_THROW(split_batch(slice, batch, kFaithful), Error) << "round " << round;
        continue;
      }
      const bool noncausal_cut =
          cut > 0 && !(batch.causal_per_req ? (*batch.causal_per_req)[last] : batch.causal);
      ASSERT_FALSE(noncausal_cut) << "a token that is not causal sees the last key";
      const Batch part = split_batch(slice, batch, kFaithful);
      validate(part);
      if (cut > 0 && batch.mm_req_doc_ranges) ++cut_with_images;
      ASSERT_EQ(seen_slots(part), expected) << "round " << round;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(cut_with_images, 100);
}

// What the faithful form is for: vLLM's loses keys without a word.
TEST(SeenKeys, VllmsFormLosesImages) {
  Batch batch = small_batch({4}, {8}, 9);
  batch.mm_req_doc_ranges = {{0, {{4, 7}}}};
  EXPECT_NE(seen_slots(unpadded(batch, 4, 1, kVllm)), seen_slots(batch));
  EXPECT_NE(seen_slots(make_local_batch(batch, 4, 2, kVllm).batch), seen_slots(batch, 4));
  EXPECT_NE(seen_slots(split_batch({0, 1, 0, 4}, batch, kVllm)), seen_slots(batch));
}

}  // namespace
}  // namespace attn
