// NaN, infinities and rows without keys: exact answers of the CPU backend.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/special_values.h"
#include "tests/cpu_reply.h"
#include "tests/cpu_score_problem.h"

namespace attn {
namespace {

using cpu_tests::answer;
using cpu_tests::Reply;
using cpu_tests::ScoreProblem;

void expect(const AttentionOp& op, double out, double lse, std::size_t row = 0) {
  const Reply run = answer(op);
  const auto equal = [](double e, double g) {
    return std::isnan(e) ? std::isnan(g) : e == g || std::fabs(e - g) <= 1e-6 * std::fabs(e);
  };
  EXPECT_TRUE(equal(out, run.out[row])) << "out: expected " << out << ", got " << run.out[row];
  EXPECT_TRUE(equal(lse, run.lse[row])) << "lse: expected " << lse << ", got " << run.lse[row];
}

TEST(CpuSpecials, NaNOrPlusInfinityInAScoreMakesTheRowNaN) {
  for (const double bad : {kNaN, kInf}) {
    for (const std::size_t at : {0u, 2u, 70u}) {
      std::vector<double> keys(80, 0.0), values(80, 1.0);
      keys[at] = bad;
      expect(ScoreProblem(keys, values).op, kNaN, kNaN);
    }
  }
  ScoreProblem with_sink({kNaN, 0}, {1, 1});
  with_sink.sink(kInf);
  expect(with_sink.op, kNaN, kNaN);
}

TEST(CpuSpecials, NaNIsSeenByTheRowsThatSeeItsKeyOnly) {
  ScoreProblem causal({0, kNaN}, {2, 1000}, 2);
  causal.op.mask.causal = true;
  expect(causal.op, 2, 0, 0);
  expect(causal.op, kNaN, kNaN, 1);
  ScoreProblem value({0, 0, 0}, {2, 4, kNaN}, 3);
  value.op.mask.causal = true;
  expect(value.op, 2, 0, 0);
  expect(value.op, 3, std::log(2.0), 1);
  expect(value.op, kNaN, std::log(3.0), 2);
}

TEST(CpuSpecials, MinusInfinityMasksTheKey) {
  expect(ScoreProblem({-kInf, 0, 0}, {kNaN, 2, 4}).op, 3, std::log(2.0));
  expect(ScoreProblem({-kInf, -kInf}, {kInf, kNaN}).op, 0, -kInf);
  ScoreProblem biased({kNaN, 1, 2}, {kNaN, 3, 5});
  biased.op.bias.attn_bias = biased.memory.list(DType::kF32, {1, 1, 1, 3}, {-kInf, 1, -kInf});
  expect(biased.op, 3, 2);
}

TEST(CpuSpecials, SinksAtTheEndsOfTheRange) {
  const std::vector<double> keys = {0, 0}, values = {1, 3};
  const double ln2 = std::log(2.0);
  const auto expect_sink = [&](double sink, bool in_lse, double out, double lse) {
    ScoreProblem scores(keys, values);
    scores.sink(sink, in_lse);
    expect(scores.op, out, lse);
  };
  expect_sink(-kInf, true, 2, ln2);
  expect_sink(kInf, true, 0, kInf);
  expect_sink(kInf, false, 0, ln2);
  expect_sink(kNaN, true, kNaN, kNaN);
  expect_sink(kNaN, false, kNaN, kNaN);
  expect_sink(1e4, true, 0, 1e4);
  expect_sink(1e4, false, 0, ln2);
  expect_sink(-1e4, true, 2, ln2);
  expect_sink(ln2, true, 1, std::log(4.0));
}

TEST(CpuSpecials, RowsWithoutKeys) {
  for (const bool in_lse : {true, false}) {
    ScoreProblem none({}, {});
    expect(none.op, 0, -kInf);
    none.sink(3, in_lse);
    expect(none.op, 0, in_lse ? 3 : -kInf);
    none.sink(-kInf, in_lse);
    expect(none.op, 0, -kInf);
    none.sink(kInf, in_lse);
    expect(none.op, 0, in_lse ? kInf : -kInf);
    none.sink(kNaN, in_lse);
    expect(none.op, kNaN, kNaN);
  }
}

TEST(CpuSpecials, InfiniteValuesSurviveWeightsThatUnderflow) {
  expect(ScoreProblem({0, -200}, {1, kInf}).op, kInf, 0);
  expect(ScoreProblem({0, -200}, {1, -kInf}).op, -kInf, 0);
  expect(ScoreProblem({0, -200}, {1, kNaN}).op, kNaN, 0);
  std::vector<double> keys(65, 0.0), values(65, 1.0);
  keys[64] = 300;  // the first tile is scaled down by e^-300
  values[0] = kInf;
  expect(ScoreProblem(keys, values).op, kInf, 300);
  ScoreProblem sink({0}, {kInf});
  sink.sink(1e4);
  expect(sink.op, kInf, 1e4);
}

TEST(CpuSpecials, CapsAndScalesBeyondFloat) {
  ScoreProblem capped({4500, 10000, -10000}, {1, 2, 4});
  capped.op.logits_soft_cap = 50;
  expect(capped.op, 1.5, 50 + std::log(2.0));
  ScoreProblem infinite({kInf, -kInf}, {1, 3});
  infinite.op.logits_soft_cap = 2;
  expect(infinite.op, (std::exp(2.0) + 3 * std::exp(-2.0)) / (std::exp(2.0) + std::exp(-2.0)),
         std::log(std::exp(2.0) + std::exp(-2.0)));
  ScoreProblem scaled({0, 1e-30}, {1, 3});
  scaled.op.scale = 1e300;
  expect(scaled.op, kNaN, kNaN);  // 1e270 is +inf in float32
  scaled.op.logits_soft_cap = 1;
  expect(scaled.op, (1 + 3 * std::exp(1.0)) / (1 + std::exp(1.0)), std::log(1 + std::exp(1.0)));
}

}  // namespace
}  // namespace attn
