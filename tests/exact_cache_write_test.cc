// Exact answers to writes into caches: whole tensors, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "attn/error.h"
#include "tests/exact_answers.h"

namespace attn {
namespace {

// Three tokens of one head of size 2 into 2 blocks of 2 slots; slots 3, none, 0. The caches hold
// the code 0x55 everywhere.
struct WriteProblem {
  WriteProblem(DType input, DType cache, const std::vector<double>& key) {
    op.key = pool.values(input, {3, 1, 2}, key);
    op.value = pool.values(input, {3, 1, 2}, {-1, -2, -3, -4, -5, -6});
    op.slot_mapping = pool.values(DType::kI64, {3}, {3, -1, 0});
    op.cache.layout = KvLayout::kPaged;
    op.cache.key = pool.codes(cache, {2, 2, 1, 2}, std::vector<std::uint64_t>(8, 0x55));
    op.cache.value = op.cache.key;
  }

  void make_per_token_head() {
    op.cache.encoding = KvEncoding::kPerTokenHead;
    op.cache.k_scale_cache = pool.values(DType::kF32, {2, 2, 1}, {7, 7, 7, 7});
    op.cache.v_scale_cache = op.cache.k_scale_cache;
  }

  std::vector<std::uint64_t> key_codes() const { return ExactAnswer{op}.codes("key_cache_after"); }

  TensorPool pool;
  CacheWriteOp op;
};

TEST(ExactCacheWrite, CopiesBitsToAddressedSlotsOnly) {
  const WriteProblem p(DType::kBF16, DType::kBF16, {1, -0.0, 3, 4, NAN, 6});
  const ExactAnswer answer{p.op};
  EXPECT_EQ(answer.codes("key_cache_after"),
            (std::vector<std::uint64_t>{0x7FC0, 0x40C0, 0x55, 0x55, 0x55, 0x55, 0x3F80, 0x8000}));
  EXPECT_EQ(answer.codes("value_cache_after"),
            (std::vector<std::uint64_t>{0xC0A0, 0xC0C0, 0x55, 0x55, 0x55, 0x55, 0xBF80, 0xC000}));
  EXPECT_EQ(answer.bits, 0);
}

TEST(ExactCacheWrite, RoundsOnceToAnotherType) {
  // 1 + 2^-8 is half way between two bf16 numbers; 65520 is beyond f16.
  const WriteProblem bf16(DType::kF32, DType::kBF16, {1 + 0x1p-8, 1 + 0x1.8p-7, 0, 0, 0, 0});
  EXPECT_EQ(bf16.key_codes()[6], 0x3F80U);
  EXPECT_EQ(bf16.key_codes()[7], 0x3F82U);
  const WriteProblem f16(DType::kF32, DType::kF16, {65520, -1, 0, 0, 0, 0});
  EXPECT_EQ(f16.key_codes()[6], 0x7C00U);
}

TEST(ExactCacheWrite, DividesInFloat32AndSaturatesFp8) {
  WriteProblem p(DType::kF32, DType::kF8E4M3FN, {1000, 1, 0, 0, -INFINITY, NAN});
  p.op.cache.k_scale = p.pool.values(DType::kF32, {1}, {2});
  EXPECT_EQ(p.key_codes(),
            (std::vector<std::uint64_t>{0xFE, 0x7F, 0x55, 0x55, 0x55, 0x55, 0x7E, 0x30}));
  // 1.1875 / 1.00000012 is a little below the tie 1.1875 and rounds to it in float32: up, to even.
  WriteProblem tie(DType::kF32, DType::kF8E4M3FN, {0x1.300002p+0, 1, 0, 0, 0, 0});
  tie.op.cache.k_scale = tie.pool.values(DType::kF32, {1}, {0x1.000002p+0});
  EXPECT_LT(0x1.300002p+0 / 0x1.000002p+0, 1.1875);
  EXPECT_EQ(0x1.300002p+0F / 0x1.000002p+0F, 1.1875F);
  EXPECT_EQ(tie.key_codes()[6], 0x3AU);
  // Input that is fp8 already is kept.
  WriteProblem fp8(DType::kF8E4M3FN, DType::kF8E4M3FN, {1, 2, 0, 0, 0, 0});
  fp8.op.cache.k_scale = p.op.cache.k_scale;
  EXPECT_EQ(fp8.key_codes()[6], 0x38U);
}

TEST(ExactCacheWrite, ScalesEachTokenAndHead) {
  // Largest 254: scale 2; -5 becomes -2.5, away from zero to -3. All zero: the smallest scale.
  WriteProblem int8(DType::kF32, DType::kI8, {254, -5, 9, 9, 0, 0});
  int8.make_per_token_head();
  const ExactAnswer answer{int8.op};
  EXPECT_EQ(answer.values("key_cache_after"), (std::vector<double>{0, 0, 85, 85, 85, 85, 127, -3}));
  EXPECT_EQ(answer.values("k_scale_cache_after"),
            (std::vector<double>{static_cast<double>(1e-6F), 7, 7, 2}));
  WriteProblem fp8(DType::kF32, DType::kF8E4M3FN, {896, -3, 9, 9, 0, 0});
  fp8.make_per_token_head();
  EXPECT_EQ(fp8.key_codes()[6], 0x7EU);
  EXPECT_EQ(fp8.key_codes()[7], 0xBCU);
}

TEST(ExactCacheWrite, HasNoRuleForAScaleOfOtherTypes) {
  WriteProblem p(DType::kF32, DType::kF32, {1, 2, 0, 0, 0, 0});
  p.op.cache.k_scale = p.pool.values(DType::kF32, {1}, {2});
  EXPECT_THROW(p.key_codes(), Error);
}

TEST(ExactMlaCacheWrite, PutsLatentFirstAndRopeLast) {
  TensorPool pool;
  MlaCacheWriteOp op;
  op.kv_c = pool.values(DType::kBF16, {2, 2}, {1, 2, 3, 4});
  op.k_pe = pool.values(DType::kBF16, {2, 1}, {8, 8});
  op.slot_mapping = pool.values(DType::kI64, {2}, {1, -1});
  op.kv_cache = pool.zeros(DType::kBF16, {1, 2, 3});
  EXPECT_EQ(ExactAnswer{op}.values("kv_cache_after"), (std::vector<double>{0, 0, 0, 1, 2, 8}));
  op.kv_cache = pool.zeros(DType::kF8E4M3FN, {1, 2, 3});
  op.k_scale = pool.values(DType::kF32, {1}, {0.5});
  EXPECT_EQ(ExactAnswer{op}.values("kv_cache_after"), (std::vector<double>{0, 0, 0, 2, 4, 16}));
}

TEST(ExactMlaCacheWrite, WritesScalesIntoDsMlaRows) {
  TensorPool pool;
  std::vector<double> latent(512, 0.0);
  latent[0] = 896;     // group 0: scale 2
  latent[1] = 3;       // 1.5
  latent[511] = -448;  // group 3: scale 1
  std::vector<double> rope(64, 0.0);
  rope[63] = 1.5;
  MlaCacheWriteOp op;
  op.encoding = KvEncoding::kFp8DsMla;
  op.kv_c = pool.values(DType::kBF16, {1, 512}, latent);
  op.k_pe = pool.values(DType::kBF16, {1, 64}, rope);
  op.slot_mapping = pool.values(DType::kI64, {1}, {0});
  op.kv_cache = pool.zeros(DType::kU8, {1, 1, 656});
  std::vector<std::uint64_t> expected(656, 0);
  expected[0] = 0x7E;
  expected[1] = 0x3C;
  expected[511] = 0xFE;
  expected[515] = 0x40;                                         // 2.0
  for (const std::size_t at : {518, 522}) expected[at] = 0x80;  // 2^-126
  expected[526] = 0x80;                                         // 1.0
  expected[527] = 0x3F;
  expected[654] = 0xC0;  // 1.5
  expected[655] = 0x3F;
  EXPECT_EQ(ExactAnswer{op}.codes("kv_cache_after"), expected);
}

}  // namespace
}  // namespace attn
