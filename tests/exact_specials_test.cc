// NaN, infinities and empty rows in exact answers: the rules of the conventions, one by one.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "core/special_values.h"
#include "tests/exact_answers.h"
#include "tests/exact_row.h"

namespace attn {
namespace {

constexpr std::uint64_t kNaNBits = 0x7ff8000000000000;

std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }

void expect_row(const ExactRow& row, double out, double lse) {
  const ExactAnswer answer{row.op};
  for (const auto& [name, expected] : {std::pair{"out", out}, std::pair{"lse", lse}}) {
    EXPECT_EQ(answer.codes(name).at(0), std::isnan(expected) ? kNaNBits : bits_of(expected))
        << name << " is " << answer.values(name).at(0) << ", expected " << expected;
  }
}

ExactRow with_sink(std::vector<double> logits, double sink) {
  ExactRow row(logits, std::vector<std::vector<double>>(logits.size(), {1.0}));
  row.set_sink(sink);
  return row;
}

TEST(ExactSpecials, NanAmongVisibleScoresOrInTheSinkComesFirst) {
  expect_row(ExactRow({0, kNaN}, {{1}, {1}}), kNaN, kNaN);
  expect_row(ExactRow({kInf, kNaN}, {{1}, {1}}), kNaN, kNaN);
  expect_row(with_sink({kNaN}, kInf), kNaN, kNaN);
  expect_row(with_sink({0}, kNaN), kNaN, kNaN);
  expect_row(with_sink({-kInf}, kNaN), kNaN, kNaN);
}

TEST(ExactSpecials, AScoreOfPlusInfinityMakesTheRowNan) {
  expect_row(ExactRow({0, kInf}, {{1}, {1}}), kNaN, kNaN);
  expect_row(with_sink({kInf}, kInf), kNaN, kNaN);
}

TEST(ExactSpecials, AnInfiniteSinkDrownsTheKeys) {
  expect_row(with_sink({0}, kInf), 0.0, kInf);
  ExactRow row = with_sink({0.5, -kInf}, kInf);
  row.op.lse_includes_sink = false;
  expect_row(row, 0.0, 0.5);
  row = with_sink({-kInf}, kInf);
  expect_row(row, 0.0, kInf);
  row.op.lse_includes_sink = false;
  expect_row(row, 0.0, -kInf);
  expect_row(with_sink({0.5}, -kInf), 1.0, 0.5);
}

TEST(ExactSpecials, AScoreOfMinusInfinityHidesItsKey) {
  expect_row(ExactRow({0.5, -kInf}, {{2}, {kNaN}}), 2.0, 0.5);
  ExactRow capped({0.5, -kInf}, {{2}, {kNaN}});
  capped.op.logits_soft_cap = 1.0;  // the cap makes it -1: visible
  EXPECT_TRUE(std::isnan(ExactAnswer(capped.op).values("out").at(0)));
}

TEST(ExactSpecials, ABiasOfMinusInfinityMasksWhateverTheScoreIs) {
  for (const double score : {0.0, kNaN, kInf}) {
    ExactRow row({0.5, score}, {{2}, {kNaN}});
    row.op.bias.attn_bias = row.pool.values(DType::kF32, {1, 1, 1, 2}, {0, -kInf});
    expect_row(row, 2.0, 0.5);
  }
  // Also beside another bias that is +inf.
  ExactRow row({0.5, 0}, {{2}, {kNaN}});
  row.op.bias.attn_bias = row.pool.values(DType::kF32, {1, 1, 1, 2}, {0, kInf});
  row.op.bias.qq_bias = row.pool.values(DType::kF32, {1, 1}, {-kInf});
  expect_row(row, 2.0, 0.5);
}

TEST(ExactSpecials, ARowWithoutKeysIsZeroAndItsLseTheSink) {
  expect_row(ExactRow({-kInf}, {{1}}), 0.0, -kInf);
  expect_row(with_sink({-kInf}, 0.25), 0.0, 0.25);
  ExactRow excluded = with_sink({-kInf}, 0.25);
  excluded.op.lse_includes_sink = false;
  expect_row(excluded, 0.0, -kInf);
  expect_row(with_sink({-kInf}, -kInf), 0.0, -kInf);
}

TEST(ExactSpecials, AVisibleKeyNeverHasTheWeightZero) {
  expect_row(ExactRow({0, -1e30}, {{1}, {-kInf}}), -kInf, 0.0);
  expect_row(ExactRow({0, -2000}, {{kInf}, {-kInf}}), kNaN, std::log1p(0.0));
  ExactRow drowned = with_sink({-1e30}, 1e30);
  drowned.op.kv.value = drowned.pool.values(DType::kF64, {1, 1, 1}, {kInf});
  expect_row(drowned, kInf, 1e30);
}

TEST(ExactSpecials, InfinityTimesZeroInAScoreIsNan) {
  ExactRow row({kInf}, {{1}});
  row.op.query = row.pool.values(DType::kF64, {1, 1, 1}, {0});
  expect_row(row, kNaN, kNaN);
}

TEST(ExactSpecials, MaskedKeysAndValuesAreNotRead) {
  ExactRow row({0.5, kNaN, kInf}, {{2}, {kNaN}, {kInf}});
  row.op.mask.attn_mask = row.pool.values(DType::kBool, {1, 1, 1, 3}, {1, 0, 0});
  expect_row(row, 2.0, 0.5);
}

TEST(ExactSpecials, SumsOfARowWithoutKeysAreZero) {
  const ExactAnswer answer{with_sink({-kInf}, 0.25).op};
  const std::vector<double> row = answer.values("cond_row");
  for (int f = 0; f < kNumRowFields; ++f) {
    const double expected = f == kRowMax || f == kRowLse ? 0.25 : f == kRowKeysMax ? -kInf : 0.0;
    EXPECT_EQ(row.at(static_cast<std::size_t>(f)), expected) << "field " << f;
  }
  for (const char* name : {"cond_pv", "cond_pav", "cond_puv", "cond_v"}) {
    EXPECT_EQ(answer.values(name).at(0), 0.0) << name;
  }
}

TEST(ExactSpecials, SumsOfARowWithoutABoundAreInfinite) {
  // NaN in one column of V, a NaN score, an infinite sink; two visible keys at 0 and 2.
  const ExactRow rows[] = {ExactRow({0, -kInf, 1}, {{1, kNaN}, {0, 0}, {1, 1}}),
                           ExactRow({0, -kInf, kNaN}, {{1, 2}, {0, 0}, {1, 1}}),
                           with_sink({0, -kInf, 1}, kInf)};
  for (const ExactRow& problem : rows) {
    const ExactAnswer answer{problem.op};
    const std::vector<double> row = answer.values("cond_row");
    for (int f = 0; f < kNumRowFields; ++f) {
      const double expected = f == kRowVisible ? 2 : f == kRowSpan ? 3 : kInf;
      EXPECT_EQ(row.at(static_cast<std::size_t>(f)), expected) << "field " << f;
    }
    for (const char* name : {"cond_pv", "cond_pav", "cond_puv", "cond_v"}) {
      for (const double x : answer.values(name)) EXPECT_EQ(x, kInf) << name;
    }
  }
}

// tanh(2^-901): 800 bits see two equal weights, 1600 what is left of them.
TEST(ExactSpecials, WhatCancellationLeavesFarBelowIsFound) {
  const ExactAnswer answer{ExactRow({0x1p-900, 0}, {{1}, {-1}}).op};
  EXPECT_EQ(answer.values("out").at(0), 0x1p-901);
  EXPECT_EQ(answer.bits, 3200);
}

}  // namespace
}  // namespace attn
