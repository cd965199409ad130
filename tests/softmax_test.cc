// The reference's row arithmetic: attend, merge, add_sink, dot.
#include "reference/softmax.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "core/special_values.h"

namespace attn::reference {
namespace {

constexpr double kUnit = 0x1p-53;  // half a unit in the last place of 1

// One value column.
RowMatrix column(const std::vector<double>& values) {
  RowMatrix rows = zero_rows(values.size(), 1);
  for (std::size_t i = 0; i < values.size(); ++i) rows(static_cast<Eigen::Index>(i), 0) = values[i];
  return rows;
}

ScoredKeys keys(const std::vector<double>& scores) {
  ScoredKeys all{scores, {}};
  for (std::size_t i = 0; i < scores.size(); ++i) {
    all.value_row.push_back(static_cast<Eigen::Index>(i));
  }
  return all;
}

State attend_column(const std::vector<double>& scores, const std::vector<double>& values,
                    std::optional<double> sink = std::nullopt, bool lse_includes_sink = true) {
  return attend(keys(scores), column(values), 1, sink, lse_includes_sink);
}

State state(double out, double lse) { return {Eigen::VectorXd::Constant(1, out), lse}; }

bool same_bits(const State& a, const State& b) {
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
  bool same = bits(a.lse) == bits(b.lse) && a.out.size() == b.out.size();
  for (Eigen::Index d = 0; same && d < a.out.size(); ++d) same = bits(a.out[d]) == bits(b.out[d]);
  return same;
}

bool is_empty(const State& s) { return s.lse == -kInf && (s.out.array() == 0.0).all(); }
bool all_nan(const State& s) { return std::isnan(s.lse) && s.out.array().isNaN().all(); }

// ---- attend

TEST(Attend, WeighsValuesByTheExponentialsOfScores) {
  const State s = attend_column({std::log(1), std::log(2), std::log(5)}, {8, 4, 16});
  EXPECT_NEAR(s.out[0], (8.0 + 2 * 4 + 5 * 16) / 8, 8 * kUnit * 12);
  EXPECT_NEAR(s.lse, std::log(8), 8 * kUnit);
}

TEST(Attend, OneKeyIsItsValueAndItsScore) {
  EXPECT_TRUE(same_bits(attend_column({-3.7}, {0.3}), state(0.3, -3.7)));
}

TEST(Attend, TakesTheRowsThatKeysName) {
  const RowMatrix values = column({kNaN, 7, kNaN, 9});
  const State s = attend({{0, 0}, {3, 1}}, values, 1, std::nullopt, true);
  EXPECT_EQ(s.out[0], 8);
}

TEST(Attend, NoKeysAreEmpty) { EXPECT_TRUE(is_empty(attend_column({}, {}))); }

TEST(Attend, NoKeysButAFiniteSinkHaveItsScore) {
  EXPECT_TRUE(same_bits(attend_column({}, {}, 2.5, true), state(0, 2.5)));
  EXPECT_TRUE(is_empty(attend_column({}, {}, 2.5, false)));
}

TEST(Attend, ASinkIsATermOfTheDenominator) {
  const State s = attend_column({0, 0, 0}, {1, 2, 3}, 0.0, true);
  EXPECT_EQ(s.out[0], 1.5);
  EXPECT_NEAR(s.lse, std::log(4), 4 * kUnit);
  const State without = attend_column({0, 0, 0}, {1, 2, 3}, 0.0, false);
  EXPECT_EQ(without.out[0], 1.5);
  EXPECT_NEAR(without.lse, std::log(3), 4 * kUnit);
}

TEST(Attend, ASinkOfMinusInfinityIsNone) {
  const State none = attend_column({1, 2, 3}, {4, 5, 6});
  EXPECT_TRUE(same_bits(attend_column({1, 2, 3}, {4, 5, 6}, -kInf, true), none));
  EXPECT_TRUE(same_bits(attend_column({1, 2, 3}, {4, 5, 6}, -kInf, false), none));
  EXPECT_TRUE(is_empty(attend_column({}, {}, -kInf, true)));
}

TEST(Attend, ASinkOfInfinityTakesAllTheWeight) {
  EXPECT_TRUE(same_bits(attend_column({1, 1}, {4, 5}, kInf, true), state(0, kInf)));
  const State without = attend_column({1, 1}, {4, 5}, kInf, false);
  EXPECT_EQ(without.out[0], 0);
  EXPECT_NEAR(without.lse, 1 + std::log(2), 4 * kUnit);
  EXPECT_TRUE(same_bits(attend_column({}, {}, kInf, true), state(0, kInf)));
  EXPECT_TRUE(is_empty(attend_column({}, {}, kInf, false)));
}

TEST(Attend, LseOfKeysSurvivesAHugeSink) {
  const State s = attend_column({0, 0}, {4, 5}, 1e4, false);
  EXPECT_NEAR(s.lse, std::log(2), 4 * kUnit);
  EXPECT_NEAR(s.out[0], 0, 1e-300);
  EXPECT_EQ(attend_column({0, 0}, {4, 5}, 1e4, true).lse, 1e4);
}

TEST(Attend, ASinkFarBelowChangesNoBit) {
  EXPECT_TRUE(same_bits(attend_column({0, 1}, {4, 5}, -1e4, true), attend_column({0, 1}, {4, 5})));
}

TEST(Attend, HugeScoresDoNotOverflow) {
  EXPECT_TRUE(same_bits(attend_column({1e308, -1e308}, {4, 5}), state(4, 1e308)));
  EXPECT_TRUE(same_bits(attend_column({-1e308}, {4}), state(4, -1e308)));
}

TEST(Attend, ANaNAmongScoresOrInTheSinkMakesEverythingNaN) {
  EXPECT_TRUE(all_nan(attend_column({0, kNaN}, {1, 2})));
  EXPECT_TRUE(all_nan(attend_column({0, kNaN}, {1, 2}, 0.0, false)));
  EXPECT_TRUE(all_nan(attend_column({0, 1}, {1, 2}, kNaN, true)));
  EXPECT_TRUE(all_nan(attend_column({0, 1}, {1, 2}, kNaN, false)));
}

TEST(Attend, NaNComesBeforeEveryOtherRule) {
  EXPECT_TRUE(all_nan(attend_column({}, {}, kNaN, true)));
  EXPECT_TRUE(all_nan(attend_column({kNaN}, {1}, kInf, true)));
  EXPECT_TRUE(all_nan(attend_column({kNaN}, {1}, kInf, false)));
}

TEST(Attend, SpecialValuesReachTheirColumnOnly) {
  RowMatrix values = zero_rows(2, 3);
  values.row(0).head(3) << kNaN, kInf, 2;
  values.row(1).head(3) << 1, 1, 4;
  const State s = attend(keys({0, 0}), values, 3, std::nullopt, true);
  EXPECT_TRUE(std::isnan(s.out[0]));
  EXPECT_EQ(s.out[1], kInf);
  EXPECT_EQ(s.out[2], 3);
}

TEST(Attend, InfinitiesOfBothSignsAreNaN) {
  EXPECT_TRUE(std::isnan(attend_column({0, 0}, {kInf, -kInf}).out[0]));
}

TEST(Attend, AnInfiniteValueUnderATinyWeightStaysInfinite) {
  EXPECT_EQ(attend_column({0, -1e6}, {1, -kInf}).out[0], -kInf);
}

// ---- long rows

// A row of equal weights: what its mean is, and what its error may be measured in.
struct LongRow {
  explicit LongRow(std::vector<double> v) : values(std::move(v)) {
    long double sum = 0, sum_of_magnitudes = 0;
    double running = 0;
    for (const double x : values) {
      sum += x;
      sum_of_magnitudes += std::fabs(x);
      running += x;
    }
    const auto count = static_cast<double>(values.size());
    mean = sum / count;
    unit = kUnit * sum_of_magnitudes / count;
    plain_error = std::fabs(running / count - mean);
  }
  State attended() const { return attend_column(std::vector<double>(values.size(), 0.0), values); }
  long double error() const { return std::fabs(attended().out[0] - mean); }

  std::vector<double> values;
  long double mean = 0;
  long double unit = 0;         // 2^-53 sum of p |v|
  long double plain_error = 0;  // of one running sum
};

constexpr std::size_t kLong = 16384;

TEST(LongRows, OfRandomValuesAreExactToAFewUnits) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(seed % 2 == 0 ? -1.0 : 0.0, 1.0);
    std::vector<double> values(kLong);
    for (double& v : values) v = uniform(random);
    const LongRow row(values);
    EXPECT_LE(row.error(), 10 * row.unit) << seed;
  }
}

// Every rounding of a constant goes the same way: the worst a sum can meet.
TEST(LongRows, OfAConstantKeepToTheBoundOfBlocksAndARunningSumDoesNot) {
  const LongRow row(std::vector<double>(kLong, 0.1));
  const int depth = 63 + kLong / 64;
  EXPECT_LE(row.error(), depth * row.unit);
  EXPECT_GT(row.plain_error, 3 * depth * row.unit);
}

TEST(LongRows, HaveAnLseExactToAFewUnits) {
  EXPECT_NEAR(LongRow(std::vector<double>(kLong, 1.0)).attended().lse, std::log(16384.0),
              2 * 9.8 * kUnit);
}

TEST(Dot, IsExactToAFewUnitsAtAnyLength) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  for (const int length : {8, 16, 64, 576, 4096}) {
    std::vector<double> a(static_cast<std::size_t>(length)), b(a.size());
    long double sum = 0, magnitude = 0;
    for (std::size_t d = 0; d < a.size(); ++d) {
      a[d] = uniform(random);
      b[d] = uniform(random);
      sum += static_cast<long double>(a[d]) * b[d];
      magnitude += std::fabs(static_cast<long double>(a[d]) * b[d]);
    }
    // Products, length / 8 additions in a lane, three more across.
    const long double allowed = (1 + length / 8 + 3) * kUnit * magnitude;
    EXPECT_LE(std::fabs(dot(a.data(), b.data(), length) - sum), allowed) << length;
  }
}

// Lane 0 holds 2^53 and loses a 1; seven other lanes keep theirs.
TEST(Dot, SumsInEightLanes) {
  std::vector<double> a(16, 1.0);
  a[0] = 0x1p53;
  EXPECT_EQ(dot(a.data(), std::vector<double>(16, 1.0).data(), 16), 0x1p53 + 14);
}

// ---- merge

TEST(Merge, AnEmptySideIsTheIdentityBitForBit) {
  const State s{Eigen::Vector3d(0.1, -0.0, 1e-320), 0.7};
  const State empty{Eigen::Vector3d(0, 0, 0), -kInf};
  EXPECT_TRUE(same_bits(merge(s, empty), s));
  EXPECT_TRUE(same_bits(merge(empty, s), s));
}

TEST(Merge, OutOfAnEmptySideIsNotRead) {
  const State dead{Eigen::VectorXd::Constant(1, kNaN), -kInf};
  EXPECT_TRUE(same_bits(merge(state(3, 0.5), dead), state(3, 0.5)));
  EXPECT_TRUE(same_bits(merge(dead, state(3, 0.5)), state(3, 0.5)));
}

TEST(Merge, TwoEmptySidesAreEmpty) {
  EXPECT_TRUE(is_empty(merge(state(0, -kInf), state(0, -kInf))));
}

TEST(Merge, WeighsByTheExponentialsOfLse) {
  const State s = merge(state(8, std::log(3)), state(16, std::log(5)));
  EXPECT_NEAR(s.out[0], 13, 13 * 8 * kUnit);
  EXPECT_NEAR(s.lse, std::log(8), 8 * kUnit);
}

TEST(Merge, DoesNotDependOnTheOrder) {
  EXPECT_TRUE(
      same_bits(merge(state(0.3, 1.1), state(-7, 2.2)), merge(state(-7, 2.2), state(0.3, 1.1))));
}

TEST(Merge, HugeLseDoesNotOverflow) {
  EXPECT_TRUE(same_bits(merge(state(3, 1e308), state(5, -1e308)), state(3, 1e308)));
  EXPECT_EQ(merge(state(3, 5e4), state(5, 5e4)).out[0], 4);
}

TEST(Merge, NaNPropagatesFromEitherSide) {
  EXPECT_TRUE(all_nan(merge(state(kNaN, kNaN), state(1, 0))));
  EXPECT_TRUE(all_nan(merge(state(1, 0), state(kNaN, kNaN))));
  EXPECT_TRUE(all_nan(merge(state(1, -kInf), state(kNaN, kNaN))));
  const State column_only = merge(state(kNaN, 1), state(1, 0));
  EXPECT_TRUE(std::isnan(column_only.out[0]));
  EXPECT_FALSE(std::isnan(column_only.lse));
}

TEST(Merge, OfTwoPartsIsTheWholeToAFewUnits) {
  const State whole = attend_column({1, -2, 3, 0.5}, {1, 2, 3, 4});
  const State merged = merge(attend_column({1, -2}, {1, 2}), attend_column({3, 0.5}, {3, 4}));
  EXPECT_NEAR(merged.out[0], whole.out[0], 16 * kUnit * 4);
  EXPECT_NEAR(merged.lse, whole.lse, 16 * kUnit * 4);
}

// ---- add_sink

TEST(AddSink, SaysWhatAttendSaysWithTheSink) {
  for (const bool includes : {true, false}) {
    for (const double sink : {0.0, -3.0, 7.5}) {
      const State expected = attend_column({1, 2, -1}, {4, 5, 6}, sink, includes);
      const State actual = add_sink(attend_column({1, 2, -1}, {4, 5, 6}), sink, includes);
      EXPECT_NEAR(actual.out[0], expected.out[0], 16 * kUnit * 6) << sink;
      EXPECT_NEAR(actual.lse, expected.lse, 16 * kUnit * 8) << sink;
    }
  }
}

TEST(AddSink, HasTheSameSpecialsAsAttend) {
  for (const bool includes : {true, false}) {
    for (const double sink : {kInf, -kInf, kNaN, 1e4, -1e4}) {
      for (const std::vector<double>& scores : {std::vector<double>{}, {0.25}, {kNaN}, {-3, -3}}) {
        const std::vector<double> values(scores.size(), 0.5);
        const State expected = attend_column(scores, values, sink, includes);
        const State actual = add_sink(attend_column(scores, values), sink, includes);
        EXPECT_TRUE((all_nan(actual) && all_nan(expected)) || same_bits(actual, expected))
            << sink << ' ' << scores.size() << ' ' << includes << ": " << actual.out[0] << ' '
            << actual.lse << " instead of " << expected.out[0] << ' ' << expected.lse;
      }
    }
  }
}

}  // namespace
}  // namespace attn::reference
