// Each policy on either side of its limit, and all of them next to plain definitions.
#include "judge/peer_policies.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "attn/random.h"
#include "core/special_values.h"
#include "judge/figures.h"

namespace attn {
namespace {

using judge::Figures;
using Values = std::vector<double>;

struct Answer {
  Values expected, actual, magnitudes = {}, naive = {};
  double visible = 0.0;
  DType stored = DType::kBF16;
};

std::optional<bool> verdict(const std::string& policy, const Answer& answer) {
  Figures figures(answer.stored, !answer.magnitudes.empty(), !answer.naive.empty());
  figures.add({answer.expected, answer.actual, answer.magnitudes, answer.naive, answer.visible});
  Judgement judgement;
  figures.write_to(judgement);
  return judgement.policies.at(policy);
}

bool passes(const std::string& policy, const Answer& answer) {
  return verdict(policy, answer).value();
}

TEST(PeerPolicies, AllcloseLimitsAreAtolPlusRtolOfTheExpected) {
  const std::map<std::string, std::pair<double, double>> limits{
      {"onnx_allclose", {1e-7, 1e-3}},        {"vllm_allclose", {1e-2, 1e-2}},
      {"cudnn_isclose", {2e-2, 2e-2}},        {"te_allclose", {1.5e-2, 1.5e-2}},
      {"kernelbench_allclose", {1e-2, 1e-2}}, {"gpumode_allclose", {8e-3, 2e-2}}};
  for (const auto& [policy, limit] : limits) {
    for (const double e : {0.0, 1.0, -3.0, 1000.0}) {
      const double allowed = limit.first + limit.second * std::fabs(e);
      for (const double sign : {1.0, -1.0}) {
        EXPECT_TRUE(passes(policy, {{7, e}, {7, e + sign * 0.999 * allowed}})) << policy << e;
        EXPECT_FALSE(passes(policy, {{7, e}, {7, e + sign * 1.001 * allowed}})) << policy << e;
        EXPECT_FALSE(passes(policy, {{e, 7}, {e + sign * 1.001 * allowed, 7}})) << policy << e;
      }
    }
  }
}

TEST(PeerPolicies, GgmlLimitsTheNormalisedSquares) {
  // 1e-4 of 100: 1 + 0.0707^2 ... sum e^2 = 100, sum of squared errors 0.05 at the limit.
  EXPECT_TRUE(passes("ggml_nmse", {{6, 8}, {6 + std::sqrt(0.0499), 8}}));
  EXPECT_FALSE(passes("ggml_nmse", {{6, 8}, {6, 8 - std::sqrt(0.0501)}}));
}

TEST(PeerPolicies, FlashinferBenchAsksForBothErrors) {
  EXPECT_TRUE(passes("flashinfer_bench", {{0.001}, {0.0109}}));   // small
  EXPECT_TRUE(passes("flashinfer_bench", {{100.0}, {100.9}}));    // relatively small
  EXPECT_FALSE(passes("flashinfer_bench", {{0.001}, {0.0111}}));  // neither
  EXPECT_FALSE(passes("flashinfer_bench", {{100.0}, {101.1}}));
}

TEST(PeerPolicies, FlashattentionComparesWithThePlainComputation) {
  Answer answer{{1, 2}, {1.02, 2}, {}, {1, 2.01}};
  EXPECT_TRUE(passes("flashattention_2x", answer));
  answer.actual[0] = 1.02 + 0.9e-5;
  EXPECT_TRUE(passes("flashattention_2x", answer));
  answer.actual[0] = 1.02 + 1.1e-5;
  EXPECT_FALSE(passes("flashattention_2x", answer));
  answer.actual[0] = 1.0;
  answer.naive[0] = kNaN;  // a plain computation that failed allows nothing
  EXPECT_FALSE(passes("flashattention_2x", answer));
  EXPECT_FALSE(verdict("flashattention_2x", {{1}, {1}}).has_value());
}

TEST(PeerPolicies, TransformerEngineComparesTheRmseWithTheRange) {
  // RMSE of one error d among four: d / 2; range 4 of the larger of both tensors.
  EXPECT_TRUE(passes("te_fp8_rmse", {{0, 4, 1, 2}, {0, 4, 1, 2 + 1.19}}));
  EXPECT_FALSE(passes("te_fp8_rmse", {{0, 4, 1, 2}, {0, 4, 1, 2 - 1.21}}));
  EXPECT_TRUE(passes("te_fp8_rmse", {{0, 4, 1, 2}, {0, 4 + 1.6, 1, 2}}));  // widens the range
  EXPECT_TRUE(passes("te_fp8_rmse", {{3, 3}, {3, 3}}));
}

TEST(PeerPolicies, OnednnAllowsARelativeErrorOrAFloor) {
  // eps = 2^-7 of bf16. n = 1: relative 16 eps = 0.125. Floor 2 * 2^-7 = 0.015625.
  Answer answer{{1}, {1.1249}, {2}, {}, 1.0};
  EXPECT_TRUE(passes("onednn_absmag", answer));
  answer.actual = {1.1251};
  EXPECT_FALSE(passes("onednn_absmag", answer));
  answer.visible = 2.0;
  EXPECT_TRUE(passes("onednn_absmag", answer));
  answer.expected = {0};
  answer.actual = {-0.0156};
  EXPECT_TRUE(passes("onednn_absmag", answer));
  answer.actual = {-0.0157};
  EXPECT_FALSE(passes("onednn_absmag", answer));
  answer.stored = DType::kF32;
  answer.actual = {0.0156};
  EXPECT_FALSE(passes("onednn_absmag", answer));
  EXPECT_FALSE(verdict("onednn_absmag", {{1}, {1}}).has_value());
}

TEST(PeerPolicies, CosineIsOfTheWholeTensor) {
  const double angle = std::acos(0.99);
  EXPECT_TRUE(passes("cosine", {{1, 0}, {5 * std::cos(angle * 0.99), 5 * std::sin(angle * 0.99)}}));
  EXPECT_FALSE(
      passes("cosine", {{1, 0}, {5 * std::cos(angle * 1.01), 5 * std::sin(angle * 1.01)}}));
}

TEST(PeerPolicies, AWrongSpecialPassesNoneAndARightOneDisturbsNone) {
  const Answer right{{1, kNaN, kInf, -kInf}, {1, kNaN, kInf, -kInf}, {1, 1, 1, 1}, {1, 1, 1, 1}};
  const Answer wrongs[] = {{{1, 2}, {1, kNaN}, {1, 1}, {1, 1}},
                           {{1, kNaN}, {1, 2}, {1, 1}, {1, 1}},
                           {{1, kInf}, {1, -kInf}, {1, 1}, {1, 1}},
                           {{1, 2}, {1, kInf}, {1, 1}, {1, 1}}};
  Figures figures(DType::kF32, true, true);
  Judgement judgement;
  figures.write_to(judgement);
  EXPECT_EQ(judgement.policies.size(), 12u);
  for (const auto& [policy, says] : judgement.policies) {
    EXPECT_TRUE(passes(policy, right)) << policy;
    for (const Answer& wrong : wrongs) EXPECT_FALSE(passes(policy, wrong)) << policy;
  }
}

// One row or many: the same verdicts as loops over the whole tensors.
TEST(PeerPolicies, AgreeWithPlainLoopsOnRandomErrors) {
  int failures = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const double size = std::ldexp(1.0, -static_cast<int>(seed % 12) - 2);
    Figures figures(DType::kF16, true, false);
    double squares = 0, norms = 0, low = kInf, high = -kInf;
    bool close = true, onnx = true, absmag = true;
    for (std::uint64_t row = 0; row < 4; ++row) {
      Values expected, actual, magnitudes;
      for (std::uint64_t j = 0; j < 16; ++j) {
        const auto draw = [&](std::uint64_t which) {
          return uniform(random_words(seed * 3 + which, row * 16 + j, RandomTensor::kKey, 0),
                         DType::kF32);
        };
        const double e = draw(0), a = e + draw(1) * size, magnitude = std::fabs(draw(2));
        expected.push_back(e);
        actual.push_back(a);
        magnitudes.push_back(magnitude);
        const double error = std::fabs(a - e);
        squares += error * error;
        norms += e * e;
        low = std::min({low, a, e});
        high = std::max({high, a, e});
        close = close && error <= 1e-2 + 1e-2 * std::fabs(e);
        onnx = onnx && error <= 1e-7 + 1e-3 * std::fabs(e);
        absmag = absmag && (error <= 0x1p-10 * magnitude || error <= 32 * 0x1p-10 * std::fabs(e));
      }
      figures.add({expected, actual, magnitudes, {}, 3.0});
    }
    Judgement judgement;
    figures.write_to(judgement);
    EXPECT_EQ(judgement.policies.at("vllm_allclose"), close);
    EXPECT_EQ(judgement.policies.at("onnx_allclose"), onnx);
    EXPECT_EQ(judgement.policies.at("onednn_absmag"), absmag);
    EXPECT_EQ(judgement.policies.at("ggml_nmse"), squares / norms <= 5e-4);
    EXPECT_EQ(judgement.policies.at("te_fp8_rmse"), std::sqrt(squares / 64) <= 0.15 * (high - low));
    failures += !close + !absmag;
  }
  EXPECT_GT(failures, 10);  // both answers occur
  EXPECT_LT(failures, 110);
}

}  // namespace
}  // namespace attn
