// Preconditions of encodings, scales, masks, biases, numbers and exec.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/special_values.h"
#include "tests/small_problem.h"

namespace attn {
namespace {

// ---- encoding

TEST(ValidateEncoding, LatentRowsAreNoCacheOfAttention) {
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.kv.encoding = KvEncoding::kFp8DsMla; }),
            "fp8_ds_mla is no cache of attention");
}

TEST(ValidateEncoding, ScalesPerTokenOrBlockNeedPages) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_varlen();
              p.op.kv.encoding = KvEncoding::kPerTokenHead;
            }),
            "a cache with a scale per token or block must be paged");
}

TEST(ValidateEncoding, PlainCachesHoldRealNumbers) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.key = p.pool.zeros(DType::kI8, {5, 4, 2, 16});
            }),
            "key is i8[5,4,2,16], expected a floating type");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.value = p.pool.zeros(DType::kF4E2M1, {5, 4, 2, 8});
            }),
            "value is f4_e2m1[5,4,2,8], expected a floating type");
}

TEST(ValidateEncoding, PerTokenHeadHoldsI8OrE4M3) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_per_token_head();
              p.op.kv.key = p.pool.zeros(DType::kF8E4M3FN, {5, 4, 2, 16});
            }),
            "");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_per_token_head();
              p.op.kv.value = p.pool.zeros(DType::kF8E5M2, {5, 4, 2, 16});
            }),
            "value is f8_e5m2[5,4,2,16], a scale per token and head needs i8, f8_e4m3fn or i4");
}

TEST(ValidateEncoding, PerTokenHeadNeedsItsScales) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_per_token_head();
              p.op.kv.v_scale_cache = TensorView{};
            }),
            "v_scale_cache is absent, expected shape [5,4,2]");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_per_token_head();
              p.op.kv.k_scale_cache = p.pool.zeros(DType::kF32, {5, 2, 4});
            }),
            "k_scale_cache is f32[5,2,4], expected shape [5,4,2]");
}

TEST(ValidateEncoding, ScaleCachesBelongToPerTokenHeadOnly) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.k_scale_cache = p.pool.zeros(DType::kF32, {5, 4, 2});
            }),
            "k_scale_cache is given, but the cache has no scale per token and head");
}

TEST(ValidateEncoding, PerTokenHeadExcludesOtherScales) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_per_token_head();
              p.op.kv.v_scale = p.pool.values(DType::kF32, {1}, {1});
            }),
            "v_scale is given, but the cache has scales of its own");
}

TEST(ValidateEncoding, NaNInAScaleCacheIsData) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_per_token_head();
              p.op.kv.k_scale_cache =
                  p.pool.values(DType::kF32, {5, 4, 2}, std::vector<double>(40, kNaN));
            }),
            "");
}

TEST(ValidateEncoding, Nvfp4HoldsE2M1) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_nvfp4();
              p.op.kv.value = p.pool.zeros(DType::kU8, {5, 4, 2, 16});
            }),
            "value is u8[5,4,2,16], expected f4_e2m1");
}

TEST(ValidateEncoding, Nvfp4NeedsAScaleForEveryGroup) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_nvfp4();
              p.op.kv.v_block_scale = p.pool.zeros(DType::kF8E4M3FN, {5, 4, 2, 2});
            }),
            "v_block_scale is f8_e4m3fn[5,4,2,2], expected shape [5,4,2,1]");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_nvfp4();
              p.op.kv.k_block_scale = p.pool.zeros(DType::kF8E8M0, {5, 4, 2, 1});
            }),
            "k_block_scale is f8_e8m0[5,4,2,1], expected f8_e4m3fn");
}

TEST(ValidateEncoding, Nvfp4HeadSizesAreMultiplesOfSixteen) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_nvfp4();
              p.op.kv.value = p.pool.zeros(DType::kF4E2M1, {5, 4, 2, 4});
            }),
            "nvfp4 needs head sizes that are multiples of 16, not 8");
}

TEST(ValidateEncoding, Nvfp4NeedsFiniteGlobalScales) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_nvfp4();
              p.op.kv.k_global_scale = TensorView{};
            }),
            "k_global_scale is absent, expected shape [1]");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_nvfp4();
              p.op.kv.v_global_scale = p.pool.values(DType::kF32, {1}, {kNaN});
            }),
            "v_global_scale[0] is nan, must be finite");
}

TEST(ValidateEncoding, Nvfp4ScalesBelongToNvfp4Only) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.k_block_scale = p.pool.zeros(DType::kF8E4M3FN, {5, 4, 2, 1});
            }),
            "k_block_scale is given, but the cache is not nvfp4");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.v_global_scale = p.pool.values(DType::kF32, {1}, {1});
            }),
            "v_global_scale is given, but the cache is not nvfp4");
}

TEST(ValidateEncoding, Nvfp4IsNeverPacked) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_nvfp4();
              p.op.kv.layout = KvLayout::kPacked;
            }),
            "nvfp4 is not allowed in paged_packed");
}

// ---- scales

TEST(ValidateScale, HasOneElementOneAHeadOrOneARequestAndHead) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{1}, {2}, {2, 2}}) {
    EXPECT_EQ(error_after([&](SmallProblem& p) {
                p.op.kv.k_scale = p.op.kv.v_scale = p.pool.zeros(DType::kF32, shape);
              }),
              "");
  }
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.kv.k_scale = p.pool.zeros(DType::kF32, {4}); }),
            "k_scale is f32[4], expected shape [2]");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.v_scale = p.pool.zeros(DType::kF32, {2, 1});
            }),
            "v_scale is f32[2,1], expected shape [2,2]");
}

TEST(ValidateScale, IsF32) {
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.kv.k_scale = p.pool.zeros(DType::kF64, {1}); }),
            "k_scale is f64[1], expected f32");
}

TEST(ValidateScale, IsFinite) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.k_scale = p.pool.values(DType::kF32, {2}, {1, kInf});
            }),
            "k_scale[1] is inf, must be finite");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.v_scale = p.pool.values(DType::kF32, {2, 2}, {1, 1, -kInf, 1});
            }),
            "v_scale[1,0] is -inf, must be finite");
}

TEST(ValidateScale, MayBeZeroOrNegative) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.k_scale = p.pool.values(DType::kF32, {2}, {0, -1});
              p.op.q_scale = p.pool.values(DType::kF32, {2}, {0, -1});
              p.op.scale = -0.5;
            }),
            "");
}

TEST(ValidateScale, OfTheQueryHasOneElementOrOneAKvHead) {
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.q_scale = p.pool.zeros(DType::kF32, {4}); }),
            "q_scale is f32[4], expected shape [2]");
  EXPECT_EQ(
      error_after([](SmallProblem& p) { p.op.q_scale = p.pool.values(DType::kF32, {1}, {kNaN}); }),
      "q_scale[0] is nan, must be finite");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.q_scale = p.pool.zeros(DType::kF16, {1}); }),
            "q_scale is f16[1], expected f32");
}

TEST(ValidateScale, OfTheOutputIsPositiveAndFinite) {
  const auto with = [](double scale) {
    return error_after(
        [=](SmallProblem& p) { p.op.output_scale = p.pool.values(DType::kF32, {1}, {scale}); });
  };
  EXPECT_EQ(with(0.5), "");
  EXPECT_EQ(with(0.0), "output_scale[0] is 0, must be positive");
  EXPECT_EQ(with(-2.0), "output_scale[0] is -2, must be positive");
  EXPECT_EQ(with(kInf), "output_scale[0] is inf, must be finite");
  EXPECT_EQ(with(kNaN), "output_scale[0] is nan, must be finite");
  EXPECT_EQ(
      error_after([](SmallProblem& p) { p.op.output_scale = p.pool.zeros(DType::kF32, {2}); }),
      "output_scale is f32[2], expected shape [1]");
}

// ---- numbers

TEST(ValidateNumbers, ScaleIsFinite) {
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.scale = kInf; }),
            "scale is inf, must be finite");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.scale = kNaN; }),
            "scale is nan, must be finite");
}

TEST(ValidateNumbers, SoftCapIsFiniteAndNotNegative) {
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.logits_soft_cap = -5; }),
            "logits_soft_cap is -5, must not be negative");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.logits_soft_cap = kInf; }),
            "logits_soft_cap is inf, must be finite");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.logits_soft_cap = kNaN; }),
            "logits_soft_cap is nan, must be finite");
}

TEST(ValidateNumbers, SinksAreOneAHead) {
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.sinks = p.pool.zeros(DType::kF32, {2}); }),
            "sinks is f32[2], expected shape [4]");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.sinks = p.pool.zeros(DType::kI32, {4}); }),
            "sinks is i32[4], expected a floating type");
}

TEST(ValidateNumbers, SinksMayBeAnything) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.sinks = p.pool.values(DType::kBF16, {4}, {kNaN, kInf, -kInf, 1e30});
            }),
            "");
}

// ---- exec

TEST(ValidateExec, NumbersAreNotNegative) {
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.exec.num_splits = -1; }),
            "exec.num_splits is -1, must be at least 0");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.exec.kv_chunk = -2; }),
            "exec.kv_chunk is -2, must be at least 0");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.exec.common_prefix_len = -1; }),
            "exec.common_prefix_len is -1, must be at least 0");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.exec.dcp_size = -1; }),
            "exec.dcp_size is -1, must be at least 0");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.exec.dcp_interleave = -4; }),
            "exec.dcp_interleave is -4, must be at least 0");
}

TEST(ValidateExec, SplitsExcludeChunks) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.exec.num_splits = 2;
              p.op.exec.kv_chunk = 3;
            }),
            "exec has num_splits 2 and kv_chunk 3, one excludes the other");
}

TEST(ValidateExec, InterleaveNeedsSeveralRanks) {
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.exec.dcp_interleave = 2; }),
            "exec.dcp_interleave is 2 without dcp_size");
}

}  // namespace
}  // namespace attn
