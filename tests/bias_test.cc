// The reference's biases by hand.
#include "reference/bias.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "core/special_values.h"
#include "tests/tensor_pool.h"

namespace attn::reference {
namespace {

// Request 1, local row 2 at position 5, context 3.
constexpr RowPosition kAt{.request = 1, .row = 2, .q = 5, .context_len = 3};

class Alibi : public testing::Test {
 protected:
  double term(AlibiForm form, std::int64_t k, std::int64_t head = 1) {
    BiasSpec bias;
    bias.alibi_form = form;
    bias.alibi_slopes = pool_.values(DType::kF32, {2}, {100, 0.5});
    return bias_terms(bias, kAt, head, k)[0];
  }
  TensorPool pool_;
};

TEST(BiasTerms, AreZeroWhenNothingIsGiven) {
  EXPECT_EQ(bias_terms({}, kAt, 0, 3), (std::array<double, 3>{0, 0, 0}));
}

TEST_F(Alibi, RowCountsFromTheRow) {
  EXPECT_EQ(term(AlibiForm::kRow, 1), -2.0);
  EXPECT_EQ(term(AlibiForm::kRow, 5), 0.0);
  EXPECT_EQ(term(AlibiForm::kRow, 7), 1.0);
}

TEST_F(Alibi, ContextCountsFromTheFirstNewToken) {
  EXPECT_EQ(term(AlibiForm::kContext, 1), -1.0);
  EXPECT_EQ(term(AlibiForm::kContext, 7), 2.0);
}

TEST_F(Alibi, ZeroCountsFromTheStart) {
  EXPECT_EQ(term(AlibiForm::kZero, 0), 0.0);
  EXPECT_EQ(term(AlibiForm::kZero, 7), 3.5);
}

TEST_F(Alibi, AbsFallsToBothSides) {
  EXPECT_EQ(term(AlibiForm::kAbs, 1), -2.0);
  EXPECT_EQ(term(AlibiForm::kAbs, 7), -1.0);
}

TEST_F(Alibi, SqrtFallsToThePastOnly) {
  EXPECT_EQ(term(AlibiForm::kSqrt, 1), -1.0);
  EXPECT_EQ(term(AlibiForm::kSqrt, 3), -0.5 * std::sqrt(2.0));
  EXPECT_EQ(term(AlibiForm::kSqrt, 5), 0.0);
  EXPECT_EQ(term(AlibiForm::kSqrt, 6), 0.0);
  EXPECT_EQ(term(AlibiForm::kSqrt, 7), 0.0);
}

TEST_F(Alibi, SlopesAreThoseOfTheHead) { EXPECT_EQ(term(AlibiForm::kRow, 4, 0), -100.0); }

TEST(AttnBias, IsIndexedByRequestHeadLocalRowAndKey) {
  TensorPool pool;
  std::vector<double> values(2 * 2 * 3 * 4, 9);
  values[((1 * 2 + 1) * 3 + 2) * 4 + 3] = -1.5;
  BiasSpec bias;
  bias.attn_bias = pool.values(DType::kF16, {2, 2, 3, 4}, values);
  EXPECT_EQ(bias_terms(bias, kAt, 1, 3), (std::array<double, 3>{0, -1.5, 0}));
  EXPECT_EQ(bias_terms(bias, kAt, 0, 3)[1], 9);
  EXPECT_EQ(bias_terms(bias, kAt, 1, 2)[1], 9);
}

TEST(AttnBias, AxesOfLengthOneBroadcast) {
  TensorPool pool;
  BiasSpec bias;
  bias.attn_bias = pool.values(DType::kF32, {1, 1, 1, 4}, {0, 1, 2, 3});
  EXPECT_EQ(bias_terms(bias, kAt, 7, 2)[1], 2);
}

TEST(TreeBias, CoversTheFirstTokensAfterTheContext) {
  TensorPool pool;
  BiasSpec bias;
  bias.qq_bias = pool.values(DType::kF32, {3, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(bias_terms(bias, kAt, 0, 2)[2], 0) << "context";
  EXPECT_EQ(bias_terms(bias, kAt, 0, 3)[2], 6);
  EXPECT_EQ(bias_terms(bias, kAt, 0, 5)[2], 8);
  EXPECT_EQ(bias_terms(bias, kAt, 0, 6)[2], 0) << "beyond the matrix";
}

TEST(TreeBias, SaysNothingOfRowsBeyondTheMatrix) {
  TensorPool pool;
  BiasSpec bias;
  bias.qq_bias = pool.values(DType::kF32, {2, 2}, {1, 1, 1, 1});
  EXPECT_EQ(bias_terms(bias, kAt, 0, 3)[2], 0);
}

TEST(BiasTerms, MaskWhereOneIsMinusInfinity) {
  EXPECT_TRUE(any_masks({0, -kInf, 0}));
  EXPECT_TRUE(any_masks({-kInf, kInf, 0}));
  EXPECT_FALSE(any_masks({0, -1e308, kInf}));
  EXPECT_FALSE(any_masks({0, std::nan(""), 0}));
}

}  // namespace
}  // namespace attn::reference
