// Writes into caches: only addressed slots change, and codes are those the formats define.
#include <gtest/gtest.h>

#include <cmath>

#include "attn/error.h"
#include "tests/operation_answer.h"

namespace attn {
namespace {

// Three tokens of one head of size 2 into 2 blocks of 2 slots; slots 3, none, 0.
struct WriteProblem {
  explicit WriteProblem(DType cache, const std::vector<double>& key = {1, 2, 3, 4, 5, 6}) {
    op.key = pool.values(DType::kF32, {3, 1, 2}, key);
    op.value = pool.values(DType::kF32, {3, 1, 2}, {-1, -2, -3, -4, -5, -6});
    op.slot_mapping = pool.values(DType::kI64, {3}, {3, -1, 0});
    op.cache.layout = KvLayout::kPaged;
    op.cache.key = pool.zeros(cache, {2, 2, 1, 2});
    op.cache.value = pool.zeros(cache, {2, 2, 1, 2});
  }
  TensorPool pool;
  CacheWriteOp op;
};

TEST(CacheWrite, SkipsMinusOneAndLeavesOtherSlots) {
  const WriteProblem p(DType::kF32);
  const OperationAnswer answer{p.op};
  EXPECT_EQ(answer.values("key_cache_after"), (std::vector<double>{5, 6, 0, 0, 0, 0, 1, 2}));
  EXPECT_EQ(answer.values("value_cache_after"), (std::vector<double>{-5, -6, 0, 0, 0, 0, -1, -2}));
}

TEST(CacheWrite, WritesOnlyAsManyRowsAsSlots) {
  WriteProblem p(DType::kF32);
  p.op.slot_mapping = p.pool.values(DType::kI64, {1}, {2});
  const OperationAnswer answer{p.op};
  EXPECT_EQ(answer.values("key_cache_after"), (std::vector<double>{0, 0, 0, 0, 1, 2, 0, 0}));
}

TEST(CacheWrite, RoundsToAnotherFloatingType) {
  // 1 + 2^-8 is half way between two bf16 numbers: to even. 65520 is beyond f16: infinity.
  const WriteProblem bf16(DType::kBF16, {1 + 0x1p-8, 1 + 0x1.8p-7, 0, 0, 0, 0});
  const std::vector<double> rounded = OperationAnswer(Operation{bf16.op}).values("key_cache_after");
  EXPECT_EQ(rounded[6], 1.0);
  EXPECT_EQ(rounded[7], 1 + 0x1p-6);
  const WriteProblem f16(DType::kF16, {65520, -1, 0, 0, 0, 0});
  EXPECT_TRUE(std::isinf(OperationAnswer(Operation{f16.op}).values("key_cache_after")[6]));
}

TEST(CacheWrite, DividesByTheScaleAndSaturatesFp8) {
  WriteProblem p(DType::kF8E4M3FN, {1000, 1, 0, 0, -INFINITY, NAN});
  p.op.cache.k_scale = p.pool.values(DType::kF32, {1}, {2});
  const OperationAnswer answer{p.op};
  const std::vector<std::uint64_t> codes = answer.codes("key_cache_after");
  EXPECT_EQ(codes[6], 0x7Eu);         // 500 -> 448
  EXPECT_EQ(codes[7], 0x30u);         // 0.5
  EXPECT_EQ(codes[0], 0xFEu);         // -inf -> -448
  EXPECT_EQ(codes[1] & 0x7F, 0x7Fu);  // NaN stays NaN
}

TEST(CacheWrite, RejectsAScaleOfZeroAndASlotOutside) {
  WriteProblem p(DType::kF8E4M3FN);
  p.op.cache.k_scale = p.pool.values(DType::kF32, {1}, {0});
  EXPECT_THROW(AttentionProblem{p.op}, Error);
  WriteProblem q(DType::kF32);
  q.op.slot_mapping = q.pool.values(DType::kI64, {1}, {4});
  EXPECT_THROW(AttentionProblem{q.op}, Error);
  q.op.slot_mapping = q.pool.values(DType::kI64, {1}, {-2});
  EXPECT_THROW(AttentionProblem{q.op}, Error);
}

WriteProblem per_token_head(DType cache, const std::vector<double>& key) {
  WriteProblem p(cache, key);
  p.op.cache.encoding = KvEncoding::kPerTokenHead;
  p.op.cache.k_scale_cache = p.pool.zeros(DType::kF32, {2, 2, 1});
  p.op.cache.v_scale_cache = p.pool.zeros(DType::kF32, {2, 2, 1});
  return p;
}

TEST(CacheWrite, ComputesAScalePerTokenAndHead) {
  // Largest 254: scale 2, codes 127 and -2.5 -> -3 (half away from zero); then all zero: the
  // smallest scale.
  const WriteProblem p = per_token_head(DType::kI8, {254, -5, 9, 9, 0, 0});
  const OperationAnswer answer{p.op};
  const std::vector<double> codes = answer.values("key_cache_after");
  EXPECT_EQ(codes[6], 127.0);
  EXPECT_EQ(codes[7], -3.0);
  const std::vector<double> scales = answer.values("k_scale_cache_after");
  EXPECT_EQ(scales[3], 2.0);
  EXPECT_EQ(scales[0], static_cast<double>(1e-6f));
  EXPECT_EQ(scales[1], 0.0);
}

TEST(CacheWrite, RejectsInputThatIsNotFiniteForAComputedScale) {
  const WriteProblem p = per_token_head(DType::kF8E4M3FN, {1, INFINITY, 0, 0, 0, 0});
  EXPECT_THROW(AttentionProblem{p.op}, Error);
  // A row that is not written may hold anything.
  const WriteProblem q = per_token_head(DType::kF8E4M3FN, {1, 2, NAN, INFINITY, 0, 0});
  EXPECT_NO_THROW(AttentionProblem{q.op});
}

TEST(MlaCacheWrite, PutsLatentFirstAndRopeLast) {
  TensorPool pool;
  MlaCacheWriteOp op;
  op.kv_c = pool.values(DType::kBF16, {2, 2}, {1, 2, 3, 4});
  op.k_pe = pool.values(DType::kBF16, {2, 1}, {7, 8});
  op.slot_mapping = pool.values(DType::kI64, {2}, {1, -1});
  op.kv_cache = pool.zeros(DType::kBF16, {1, 2, 3});
  const OperationAnswer answer{op};
  EXPECT_EQ(answer.values("kv_cache_after"), (std::vector<double>{0, 0, 0, 1, 2, 7}));
}

TEST(MlaCacheWrite, WritesDsMlaRowsWithInlineScales) {
  TensorPool pool;
  std::vector<double> latent(512, 0.0);
  latent[0] = 896.0;     // group 0: scale 2
  latent[1] = 3.0;       // 1.5
  latent[511] = -448.0;  // group 3: scale 1
  std::vector<double> rope(64, 0.0);
  rope[63] = 1.5;
  MlaCacheWriteOp op;
  op.encoding = KvEncoding::kFp8DsMla;
  op.kv_c = pool.values(DType::kBF16, {1, 512}, latent);
  op.k_pe = pool.values(DType::kBF16, {1, 64}, rope);
  op.slot_mapping = pool.values(DType::kI64, {1}, {0});
  op.kv_cache = pool.zeros(DType::kU8, {1, 1, 656});
  const OperationAnswer answer{op};
  const auto* row = static_cast<const std::byte*>(answer.view("kv_cache_after").data);
  EXPECT_EQ(load_code(DType::kU8, row), 0x7Eu);
  EXPECT_EQ(decode(DType::kF8E4M3FN, load_code(DType::kU8, row + 1)), 1.5);
  EXPECT_EQ(load_code(DType::kU8, row + 511), 0xFEu);
  EXPECT_EQ(decode(DType::kF32, load_code(DType::kF32, row + 512)), 2.0);
  EXPECT_EQ(decode(DType::kF32, load_code(DType::kF32, row + 516)), 0x1p-126);
  EXPECT_EQ(decode(DType::kF32, load_code(DType::kF32, row + 524)), 1.0);
  EXPECT_EQ(decode(DType::kBF16, load_code(DType::kBF16, row + 654)), 1.5);
}

}  // namespace
}  // namespace attn
