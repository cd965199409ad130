// The simulated kernel bit for bit against kernels and sums written down in the machine's floats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attn/random.h"
#include "property_tests/software_model.h"

namespace attn::property_tests {
namespace {

// Operands of one row, floats.
struct FloatRow {
  explicit FloatRow(std::uint64_t seed) {
    const auto draw = [&](std::size_t n, RandomTensor tensor) {
      std::vector<double> x;
      for (std::size_t i = 0; i < n; ++i) {
        x.push_back(static_cast<float>(bell(random_words(seed, i, tensor, 0))));
      }
      return x;
    };
    row.query = draw(kSize, RandomTensor::kQuery);
    keys = draw(kKeys * kSize, RandomTensor::kKey);
    values = draw(kKeys * kSizeV, RandomTensor::kValue);
    for (std::size_t k = 0; k < kKeys; ++k) {
      row.positions.push_back(static_cast<std::int64_t>(k));
      row.keys.push_back(keys.data() + k * kSize);
      row.values.push_back(values.data() + k * kSizeV);
    }
    row.scale = 0.25;
    row.head_size_v = kSizeV;
  }

  static constexpr std::size_t kKeys = 40, kSize = 16, kSizeV = 5;
  ModelRow row;
  std::vector<double> keys, values;
};

Arithmetic stored_in_f32(Arithmetic arithmetic) {
  return with_stored_type(arithmetic, DType::kF32);
}

// A kernel of contract fp32 in the machine's own floats: online softmax in steps of 16, base e.
TEST(SoftwareModel, OfFp32IsAKernelInFloats) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const FloatRow given(seed);
    float max = -std::numeric_limits<float>::infinity();
    float sum = 0.0F;
    float acc[FloatRow::kSizeV] = {};
    for (std::size_t first = 0; first < FloatRow::kKeys; first += 16) {
      const std::size_t last = std::min(first + 16, FloatRow::kKeys);
      std::vector<float> u;
      for (std::size_t k = first; k < last; ++k) {
        float dot = 0.0F;
        for (std::size_t d = 0; d < FloatRow::kSize; ++d) {
          dot = std::fma(static_cast<float>(given.row.query[d]),
                         static_cast<float>(given.row.keys[k][d]), dot);
        }
        u.push_back(dot * 0.25F);
      }
      const float step_max = *std::max_element(u.begin(), u.end());
      if (step_max > max) {
        if (first > 0) {
          const auto factor = static_cast<float>(std::exp(static_cast<double>(max - step_max)));
          sum *= factor;
          for (float& x : acc) x *= factor;
        }
        max = step_max;
      }
      for (std::size_t k = first; k < last; ++k) {
        const auto p = static_cast<float>(std::exp(static_cast<double>(u[k - first] - max)));
        sum += p;
        for (std::size_t j = 0; j < FloatRow::kSizeV; ++j) {
          acc[j] = std::fma(p, static_cast<float>(given.row.values[k][j]), acc[j]);
        }
      }
    }
    Arithmetic arithmetic = stored_in_f32(resolve({"fp32"}));
    arithmetic.tile = 16;
    const SoftwareModel model(arithmetic, plain_model_options(arithmetic, DType::kF32));
    std::vector<double> out(FloatRow::kSizeV);
    const double lse = model.answer(given.row, out);
    for (std::size_t j = 0; j < out.size(); ++j) ASSERT_EQ(out[j], acc[j] * (1.0F / sum));
    ASSERT_EQ(lse, max + static_cast<float>(std::log(static_cast<double>(sum))));
  }
}

// The naive kernel in bf16: scores and weights stored in bf16, weights normalised.
TEST(SoftwareModel, OfBf16UnfusedIsAKernelInFloatsAndBf16) {
  const auto bf16 = [](double x) {
    return static_cast<float>(decode(DType::kBF16, encode(DType::kBF16, x, Overflow::kInfinity)));
  };
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    FloatRow given(seed);
    for (double& x : given.row.query) x = bf16(x);
    for (double& x : given.keys) x = bf16(x);
    for (double& x : given.values) x = bf16(x);
    std::vector<float> u;
    for (std::size_t k = 0; k < FloatRow::kKeys; ++k) {
      float dot = 0.0F;
      for (std::size_t d = 0; d < FloatRow::kSize; ++d) {
        dot += static_cast<float>(given.row.query[d]) * static_cast<float>(given.row.keys[k][d]);
      }
      u.push_back(bf16(dot * 0.25F));
    }
    const float max = *std::max_element(u.begin(), u.end());
    float sum = 0.0F;
    std::vector<float> weights;
    for (const float x : u) {
      weights.push_back(static_cast<float>(std::exp(static_cast<double>(x - max))));
      sum += weights.back();
    }
    float acc[FloatRow::kSizeV] = {};
    for (std::size_t k = 0; k < FloatRow::kKeys; ++k) {
      const float p = bf16(weights[k] / sum);
      for (std::size_t j = 0; j < FloatRow::kSizeV; ++j) {
        acc[j] += p * static_cast<float>(given.row.values[k][j]);
      }
    }
    const Arithmetic arithmetic = stored_in_f32(resolve({"bf16_unfused"}));
    ModelOptions options = plain_model_options(arithmetic, DType::kF32);
    options.reciprocal = false;
    std::vector<double> out(FloatRow::kSizeV);
    SoftwareModel(arithmetic, options).answer(given.row, out);
    for (std::size_t j = 0; j < out.size(); ++j) ASSERT_EQ(out[j], acc[j]);
  }
}

// 16 products of 2^-25 beside an accumulator of 1: a matrix step loses each of them, a chain of
// fused products rounds them away too, in another order they add up.
TEST(SoftwareModel, MatrixStepsLoseWhatIsBelowTheLargestAddend) {
  Summation sum;
  sum.mode = RoundingMode::kTruncate;
  std::vector<double> ones(33, 1.0);
  std::vector<double> terms(33, 0x1p-25);
  terms[32] = 1.0;
  sum.mma_k = 33;
  const SumRules together(sum, false, SumOrder::kForward, 0);
  EXPECT_EQ(together.dot(ones.data(), terms.data(), 33), 1.0);
  sum.mma_k = 32;
  const SumRules apart(sum, false, SumOrder::kForward, 0);
  EXPECT_EQ(apart.dot(ones.data(), terms.data(), 33), 1.0 + 0x1p-20);
  sum.inner = 0x1p-13;  // accumulator of 13 fraction bits
  const SumRules coarse(sum, false, SumOrder::kForward, 0);
  EXPECT_EQ(coarse.dot(ones.data(), terms.data(), 33), 1.0);
  terms[32] = 0x1p-8;
  EXPECT_EQ(coarse.dot(ones.data(), terms.data(), 33), 0x1p-8 + 0x1p-20);
}

TEST(SoftwareModel, MatrixStepsTruncateOrRoundEachAddend) {
  const std::vector<double> ones(4, 1.0);
  const std::vector<double> terms = {1.0, 0x1.8p-24, 0x1.8p-24, -0x1.8p-24};
  Summation sum;
  sum.mma_k = 4;
  const SumRules nearest(sum, false, SumOrder::kForward, 0);
  EXPECT_EQ(nearest.dot(ones.data(), terms.data(), 4), 1.0 + 0x1p-23);
  sum.mode = RoundingMode::kTruncate;
  const SumRules truncate(sum, false, SumOrder::kForward, 0);
  EXPECT_EQ(truncate.dot(ones.data(), terms.data(), 4), 1.0);
}

// 1 + 2^-23 and a product just below half of the last place: rounded to double it would be a tie.
TEST(SoftwareModel, FusedProductsAreRoundedOnce) {
  const std::vector<double> a = {1.0 + 0x1p-23, 0x1p-12 * (1.0 + 0x1p-15)};
  const std::vector<double> b = {1.0, 0x1p-12 * (1.0 - 0x1p-15)};
  const SumRules rules({}, false, SumOrder::kForward, 0);
  EXPECT_EQ(rules.dot(a.data(), b.data(), 2), 1.0 + 0x1p-23);
  double acc = 1.0 + 0x1p-23;
  rules.add_products(a[1], {&b[1], 1}, &acc);
  EXPECT_EQ(acc, 1.0 + 0x1p-23);
}

TEST(SoftwareModel, AccumulatorsOfFewerBitsArePromotedEveryBlock) {
  const std::vector<double> ones(8, 1.0);
  const std::vector<double> terms = {1.0, 0x1p-13, 0x1p-13, 0x1p-13, 0.0, 0x1p-13, 0.0, 0.0};
  Summation sum;
  sum.block = 4;
  const SumRules full(sum, false, SumOrder::kForward, 0);
  EXPECT_EQ(full.dot(ones.data(), terms.data(), 8), 1.0 + 4 * 0x1p-13);
  sum.inner = 0x1p-13;  // 12 fraction bits: 1 + 2^-13 is a tie, to even
  const SumRules coarse(sum, false, SumOrder::kForward, 0);
  EXPECT_EQ(coarse.dot(ones.data(), terms.data(), 8), 1.0 + 0x1p-13);
}

}  // namespace
}  // namespace attn::property_tests
