// Preconditions of masks and biases.
#include <gtest/gtest.h>

#include "tests/small_problem.h"

namespace attn {
namespace {

TEST(ValidateMask, BoundsAndLengthsAreNotNegative) {
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.mask.window_left = -2; }),
            "window_left is -2, must be at least -1");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.mask.window_right = -2; }),
            "window_right is -2, must be at least -1");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.mask.sink_token_length = -1; }),
            "sink_token_length is -1, must be at least 0");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.mask.attention_chunk_size = -1; }),
            "attention_chunk_size is -1, must be at least 0");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.mask.attention_chunk_lookback = -1; }),
            "attention_chunk_lookback is -1, must be at least 0");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.mask.rswa_window = -1; }),
            "rswa_window is -1, must be at least 0");
}

TEST(ValidateMask, CausalPerRequestIsAFlagForEveryRequest) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.mask.causal_per_req = p.pool.zeros(DType::kBool, {3});
            }),
            "causal_per_req is bool[3], expected shape [2]");
  EXPECT_EQ(error_after(
                [](SmallProblem& p) { p.op.mask.causal_per_req = p.pool.zeros(DType::kU8, {2}); }),
            "causal_per_req is u8[2], expected bool");
}

TEST(ValidateMask, RangesArePairsForEveryRequest) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.mask.mm_prefix_ranges = p.pool.zeros(DType::kI32, {2, 4, 3});
            }),
            "mm_prefix_ranges is i32[2,4,3], expected shape [2,?,2]");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.mask.mm_prefix_ranges = p.pool.zeros(DType::kI64, {2, 4, 2});
            }),
            "mm_prefix_ranges is i64[2,4,2], expected i32");
}

TEST(ValidateMask, AnyRangeIsAccepted) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.mask.mm_prefix_ranges =
                  p.pool.values(DType::kI32, {2, 2, 2}, {-1, -1, 3, 900, 4, 4, 2, 0});
            }),
            "");
}

void use_rswa(SmallProblem& p) {
  p.op.mask.rswa_window = 3;
  p.op.mask.rswa_prefix_lens = p.pool.values(DType::kI32, {2}, {2, 1});
}

TEST(ValidateMask, RswaAloneIsAccepted) { EXPECT_EQ(error_after(use_rswa), ""); }

TEST(ValidateMask, RswaNeedsPrefixLengths) {
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.mask.rswa_window = 3; }),
            "rswa_prefix_lens is absent, expected i32");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              use_rswa(p);
              p.op.mask.rswa_prefix_lens = p.pool.zeros(DType::kI32, {1});
            }),
            "rswa_prefix_lens is i32[1], expected shape [2]");
}

TEST(ValidateMask, PrefixLengthsBelongToRswa) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              use_rswa(p);
              p.op.mask.rswa_window = 0;
            }),
            "rswa_prefix_lens is given, but rswa_window is not");
}

TEST(ValidateMask, RswaNeedsCausal) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              use_rswa(p);
              p.op.mask.causal = false;
            }),
            "rswa_window 3 needs causal");
}

TEST(ValidateMask, RswaExcludesTensorsOfOtherMasks) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              use_rswa(p);
              p.op.mask.causal_per_req = p.pool.zeros(DType::kBool, {2});
            }),
            "causal_per_req is given, but rswa_window excludes it");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              use_rswa(p);
              p.op.mask.mm_prefix_ranges = p.pool.zeros(DType::kI32, {2, 1, 2});
            }),
            "mm_prefix_ranges is given, but rswa_window excludes it");
}

TEST(ValidateMask, RswaExcludesWindowsAndChunks) {
  const auto error_with = [](auto change) {
    return error_after([=](SmallProblem& p) {
      use_rswa(p);
      change(p.op.mask);
    });
  };
  constexpr auto kText = "rswa_window 3 excludes every other window and chunk";
  EXPECT_EQ(error_with([](MaskSpec& mask) { mask.window_left = 0; }), kText);
  EXPECT_EQ(error_with([](MaskSpec& mask) { mask.window_right = 0; }), kText);
  EXPECT_EQ(error_with([](MaskSpec& mask) { mask.sink_token_length = 1; }), kText);
  EXPECT_EQ(error_with([](MaskSpec& mask) { mask.attention_chunk_size = 1; }), kText);
}

TEST(ValidateMask, RswaGoesWithAttnMaskAndBiases) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              use_rswa(p);
              p.op.mask.attn_mask = p.pool.zeros(DType::kBool, {1, 1, 1, 1});
              p.op.bias.qq_bias = p.pool.zeros(DType::kF32, {2, 2});
            }),
            "");
}

// The largest query_len is 2, the largest sequence 5.
TEST(ValidateMask, AttnMaskFitsTheProblemOrBroadcasts) {
  const auto error_with = [](const std::vector<std::int64_t>& shape) {
    return error_after(
        [&](SmallProblem& p) { p.op.mask.attn_mask = p.pool.zeros(DType::kBool, shape); });
  };
  EXPECT_EQ(error_with({2, 4, 2, 5}), "");
  EXPECT_EQ(error_with({2, 4, 2, 9}), "");
  EXPECT_EQ(error_with({1, 1, 1, 1}), "");
  EXPECT_EQ(error_with({3, 4, 2, 5}), "attn_mask is bool[3,4,2,5], expected [2|1,4|1,2|1,>=5|1]");
  EXPECT_EQ(error_with({2, 2, 2, 5}), "attn_mask is bool[2,2,2,5], expected [2|1,4|1,2|1,>=5|1]");
  EXPECT_EQ(error_with({2, 4, 3, 5}), "attn_mask is bool[2,4,3,5], expected [2|1,4|1,2|1,>=5|1]");
  EXPECT_EQ(error_with({2, 4, 2, 4}), "attn_mask is bool[2,4,2,4], expected [2|1,4|1,2|1,>=5|1]");
  EXPECT_EQ(error_with({4, 2, 5}), "attn_mask is bool[4,2,5], expected shape [?,?,?,?]");
}

TEST(ValidateMask, AttnMaskIsBool) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.mask.attn_mask = p.pool.zeros(DType::kF32, {1, 1, 1, 1});
            }),
            "attn_mask is f32[1,1,1,1], expected bool");
}

TEST(ValidateBias, AlibiNeedsASlopeForEveryHead) {
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.bias.alibi_form = AlibiForm::kRow; }),
            "alibi_slopes is absent, expected shape [4]");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.bias.alibi_form = AlibiForm::kSqrt;
              p.op.bias.alibi_slopes = p.pool.zeros(DType::kF32, {2});
            }),
            "alibi_slopes is f32[2], expected shape [4]");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.bias.alibi_form = AlibiForm::kAbs;
              p.op.bias.alibi_slopes = p.pool.zeros(DType::kF64, {4});
            }),
            "alibi_slopes is f64[4], expected f32");
}

TEST(ValidateBias, SlopesNeedAForm) {
  EXPECT_EQ(
      error_after([](SmallProblem& p) { p.op.bias.alibi_slopes = p.pool.zeros(DType::kF32, {4}); }),
      "alibi_slopes is given, but alibi_form is not");
}

TEST(ValidateBias, AdditiveBiasIsFloatingAndFits) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.bias.attn_bias = p.pool.zeros(DType::kBool, {1, 1, 1, 1});
            }),
            "attn_bias is bool[1,1,1,1], expected a floating type");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.bias.attn_bias = p.pool.zeros(DType::kF16, {1, 4, 2, 3});
            }),
            "attn_bias is f16[1,4,2,3], expected [2|1,4|1,2|1,>=5|1]");
}

TEST(ValidateBias, TreeBiasIsASquareOfF32) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.bias.qq_bias = p.pool.zeros(DType::kF32, {2, 3});
            }),
            "qq_bias is f32[2,3], expected shape [3,3]");
  EXPECT_EQ(
      error_after([](SmallProblem& p) { p.op.bias.qq_bias = p.pool.zeros(DType::kF32, {4}); }),
      "qq_bias is f32[4], expected shape [?,?]");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.bias.qq_bias = p.pool.zeros(DType::kF16, {2, 2});
            }),
            "qq_bias is f16[2,2], expected f32");
}

}  // namespace
}  // namespace attn
