// Figures by hand and by plain loops.
#include "judge/telemetry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "attn/random.h"
#include "core/special_values.h"
#include "judge/figures.h"

namespace attn {
namespace {

using judge::Figures;
using judge::TelemetryTally;

Telemetry of(const std::vector<double>& expected, const std::vector<double>& actual,
             DType stored = DType::kF32) {
  TelemetryTally tally(stored);
  tally.add(expected, actual);
  return tally.result();
}

TEST(TelemetryFigures, ByHand) {
  const Telemetry t = of({3, -4}, {3.5, -4});
  EXPECT_DOUBLE_EQ(t.nmse, 0.25 / 25.0);
  EXPECT_DOUBLE_EQ(t.cosine, (10.5 + 16.0) / (5.0 * std::sqrt(28.25)));
  EXPECT_EQ(t.max_abs, 0.5);
  EXPECT_DOUBLE_EQ(t.max_rel, 0.5 / 3.0);
  EXPECT_EQ(t.max_ulp, 0.5 * 0x1p22);  // of 3 an ulp is 2^-22
}

TEST(TelemetryFigures, UlpIsTheStoredTypes) {
  EXPECT_EQ(of({1.0}, {1.0 + 0x1p-23}).max_ulp, 1.0);
  EXPECT_EQ(of({1.0}, {1.0 - 0x1p-7}, DType::kBF16).max_ulp, 1.0);
  EXPECT_EQ(of({-1.75}, {-1.75 + 3 * 0x1p-10}, DType::kF16).max_ulp, 3.0);
  EXPECT_EQ(of({0x1p-52}, {0x1.8p-52}, DType::kF64).max_ulp, 0x1p51);
  // Below the smallest normal, and of 0, an ulp is the smallest subnormal.
  EXPECT_EQ(of({0.0}, {0x1p-149}).max_ulp, 1.0);
  EXPECT_EQ(of({0x1p-20}, {0.0}, DType::kF16).max_ulp, 0x1p-20 / 0x1p-24);
  EXPECT_EQ(of({0.0}, {3 * std::numeric_limits<double>::denorm_min()}, DType::kF64).max_ulp, 3.0);
}

TEST(TelemetryFigures, OfEqualAndOfZeroTensors) {
  const Telemetry equal = of({1, 2, 0}, {1, 2, 0});
  EXPECT_EQ(equal.nmse, 0.0);
  EXPECT_DOUBLE_EQ(equal.cosine, 1.0);
  EXPECT_EQ(equal.max_rel, 0.0);
  const Telemetry zeros = of({0, 0}, {0, -0.0});
  EXPECT_EQ(zeros.nmse, 0.0);
  EXPECT_EQ(zeros.cosine, 1.0);
  const Telemetry no_answer = of({1, 2}, {0, 0});
  EXPECT_EQ(no_answer.nmse, 1.0);
  EXPECT_EQ(no_answer.cosine, 0.0);
  EXPECT_EQ(of({0.0}, {1.0}).nmse, kInf);
  EXPECT_EQ(of({0.0}, {1.0}).max_rel, kInf);
  EXPECT_DOUBLE_EQ(of({1, 2}, {-1, -2}).cosine, -1.0);
  EXPECT_EQ(of({}, {}).cosine, 1.0);
}

TEST(TelemetryFigures, RowsAddUpAndAgreeWithPlainLoops) {
  TelemetryTally tally(DType::kF32);
  double errors = 0, squares = 0, others = 0, products = 0, largest = 0, relative = 0, ulps = 0;
  for (std::uint64_t row = 0; row < 9; ++row) {
    std::vector<double> expected, actual;
    for (std::uint64_t j = 0; j < 37; ++j) {
      const double e = uniform(random_words(1, row * 37 + j, RandomTensor::kQuery, 0), DType::kF32);
      const double d = uniform(random_words(2, row * 37 + j, RandomTensor::kQuery, 0), DType::kF32);
      const double a = e + d * 0x1p-9;
      expected.push_back(e);
      actual.push_back(a);
      errors += (a - e) * (a - e);
      squares += e * e;
      others += a * a;
      products += a * e;
      largest = std::max(largest, std::fabs(a - e));
      relative = std::max(relative, std::fabs(a - e) / std::fabs(e));
      ulps = std::max(ulps, std::fabs(a - e) / std::ldexp(1.0, std::ilogb(e) - 23));
    }
    tally.add(expected, actual);
  }
  const Telemetry t = tally.result();
  EXPECT_NEAR(t.nmse / (errors / squares), 1.0, 1e-12);
  EXPECT_NEAR(t.cosine, products / std::sqrt(squares * others), 1e-12);
  EXPECT_EQ(t.max_abs, largest);
  EXPECT_EQ(t.max_rel, relative);
  EXPECT_DOUBLE_EQ(t.max_ulp, ulps);
}

TEST(TelemetryFigures, LeaveOutWhatIsNotFinite) {
  Figures figures(DType::kF32, false, false);
  const std::vector<double> expected{1, kInf, kNaN, 2, 4, -kInf};
  const std::vector<double> actual{1, kInf, kNaN, 2.5, kNaN, kInf};
  figures.add({expected, actual, {}, {}, 0.0});
  Judgement judgement;
  figures.write_to(judgement);
  ASSERT_TRUE(judgement.telemetry.has_value());
  EXPECT_EQ(judgement.telemetry->max_abs, 0.5);
  EXPECT_DOUBLE_EQ(judgement.telemetry->nmse, 0.25 / 5.0);
  EXPECT_EQ(judgement.telemetry->left_out, 4);
}

// Where nothing is finite there is no figure, and none that looks perfect.
TEST(TelemetryFigures, AreAbsentWhereNothingIsFinite) {
  Figures figures(DType::kF32, false, false);
  figures.add({std::vector<double>{1, 2}, std::vector<double>{kNaN, kInf}, {}, {}, 0.0});
  Judgement judgement;
  figures.write_to(judgement);
  EXPECT_FALSE(judgement.telemetry.has_value());
  for (const auto& [policy, passes] : judgement.policies) EXPECT_NE(passes, true) << policy;
}

TEST(TelemetryFigures, SeeAConstantExpectation) {
  const auto constant = [](const std::vector<double>& expected) {
    Figures figures(DType::kF32, false, false);
    figures.add({expected, expected, {}, {}, 0.0});
    return figures.expects_a_constant();
  };
  EXPECT_TRUE(constant({0.5, 0.5, 0.5}));
  EXPECT_TRUE(constant({0.0, -0.0}));
  EXPECT_TRUE(constant({0.5, kNaN, 0.5}));
  EXPECT_FALSE(constant({0.5}));
  EXPECT_FALSE(constant({}));
  EXPECT_FALSE(constant({0.5, 0.5, std::nextafter(0.5, 1.0)}));
}

}  // namespace
}  // namespace attn
