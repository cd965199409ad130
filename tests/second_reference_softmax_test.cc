// Rows of the second reference: sums that are known, and what NaN and infinities do.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "reference/second/row_softmax.h"

namespace attn::second {
namespace {

constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
constexpr long double kNaN = std::numeric_limits<long double>::quiet_NaN();

struct Key {
  long double logit;
  long double value;
};

RowSoftmax row_of(const std::vector<Key>& keys) {
  RowSoftmax softmax(1);
  for (const Key& key : keys) softmax.add(key.logit, [&](std::int64_t) { return key.value; });
  return softmax;
}

void expect_row(const RowAnswer& row, long double out, long double lse) {
  const auto same = [](long double a, long double b) {
    if (std::isnan(b)) return std::isnan(a);
    return a == b || std::fabs(a - b) <= 1e-17L * std::fabs(b);
  };
  EXPECT_TRUE(same(row.out[0], out)) << row.out[0] << ", expected " << out;
  EXPECT_TRUE(same(row.lse, lse)) << row.lse << ", expected " << lse;
}

const long double kLn2 = std::log(2.0L);
const long double kLn3 = std::log(3.0L);

TEST(SecondReferenceSoftmax, WeighsInAnyOrderOfLogits) {
  // Weights 1 and 2 of 3: 1/3 * 6 + 2/3 * 9 = 8.
  expect_row(row_of({{0.0L, 6.0L}, {kLn2, 9.0L}}).answer(), 8.0L, kLn3);
  expect_row(row_of({{kLn2, 9.0L}, {0.0L, 6.0L}}).answer(), 8.0L, kLn3);
  expect_row(row_of({{-5000.0L, 6.0L}, {-5000.0L, 9.0L}}).answer(), 7.5L, kLn2 - 5000.0L);
}

TEST(SecondReferenceSoftmax, CountsASinkOnce) {
  const RowSoftmax keys = row_of({{0.0L, 6.0L}, {0.0L, 9.0L}});
  expect_row(keys.answer(0.0L, true), 5.0L, kLn3);
  expect_row(keys.answer(0.0L, false), 5.0L, kLn2);
  expect_row(keys.answer(-kInfinity, true), 7.5L, kLn2);
  expect_row(keys.answer(kInfinity, true), 0.0L, kInfinity);
  expect_row(keys.answer(kInfinity, false), 0.0L, kLn2);
  expect_row(keys.answer(kNaN, false), kNaN, kNaN);
}

TEST(SecondReferenceSoftmax, AnswersRowsWithoutKeys) {
  const RowSoftmax nothing = row_of({{-kInfinity, kNaN}});
  expect_row(nothing.answer(), 0.0L, -kInfinity);
  expect_row(nothing.answer(2.5L, true), 0.0L, 2.5L);
  expect_row(nothing.answer(2.5L, false), 0.0L, -kInfinity);
  expect_row(nothing.answer(kInfinity, true), 0.0L, kInfinity);
  expect_row(nothing.answer(kInfinity, false), 0.0L, -kInfinity);
  expect_row(nothing.answer(kNaN, true), kNaN, kNaN);
}

TEST(SecondReferenceSoftmax, IsNaNWithALogitOfNaNOrPlusInfinity) {
  for (const long double bad : {kNaN, kInfinity}) {
    for (const auto& keys : {std::vector<Key>{{0.0L, 1.0L}, {bad, 2.0L}},
                             std::vector<Key>{{bad, 1.0L}, {0.0L, 2.0L}}}) {
      expect_row(row_of(keys).answer(), kNaN, kNaN);
      expect_row(row_of(keys).answer(1.0L, true), kNaN, kNaN);
      expect_row(row_of(keys).answer(kInfinity, true), kNaN, kNaN);
    }
  }
}

TEST(SecondReferenceSoftmax, KeepsInfiniteValuesUnderTheSmallestWeight) {
  expect_row(row_of({{0.0L, 1.0L}, {-1e6L, kInfinity}}).answer(), kInfinity, 0.0L);
  expect_row(row_of({{-1e6L, -kInfinity}, {0.0L, 1.0L}}).answer(), -kInfinity, 0.0L);
  expect_row(row_of({{-1e6L, kInfinity}, {0.0L, -kInfinity}}).answer(), kNaN, 0.0L);
  expect_row(row_of({{-1e6L, kNaN}, {0.0L, 1.0L}}).answer(), kNaN, 0.0L);
  expect_row(row_of({{0.0L, kInfinity}}).answer(1e6L, true), kInfinity, 1e6L);
}

}  // namespace
}  // namespace attn::second
