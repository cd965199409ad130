#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "attn/error.h"
#include "attn/mask.h"

namespace attn {
namespace {

std::vector<float> powers_of_two(const std::vector<double>& exponents) {
  std::vector<float> slopes;
  for (const double exponent : exponents) slopes.push_back(static_cast<float>(std::exp2(exponent)));
  return slopes;
}

// The recursion its authors published: a geometric series for a power of two; otherwise that of
// the closest one below, then every other slope of twice as many heads.
std::vector<float> published_slopes(int n) {
  int closest = 1;
  while (2 * closest <= n) closest *= 2;
  std::vector<float> slopes;
  if (closest == n) {
    const long double start = -std::exp2(-(std::log2(static_cast<long double>(n)) - 3));
    for (int i = 0; i < n; ++i) slopes.push_back(static_cast<float>(std::exp2(start * (i + 1))));
    return slopes;
  }
  slopes = published_slopes(closest);
  const std::vector<float> twice = published_slopes(2 * closest);
  for (int i = 0; static_cast<int>(slopes.size()) < n; i += 2) {
    slopes.push_back(twice[static_cast<std::size_t>(i)]);
  }
  return slopes;
}

// Values from reports of wrong slopes in other projects.
TEST(AlibiSlopes, OfEightTwelveAndSixHeads) {
  EXPECT_EQ(alibi_slopes(8), powers_of_two({-1, -2, -3, -4, -5, -6, -7, -8}));
  EXPECT_EQ(alibi_slopes(12),
            powers_of_two({-1, -2, -3, -4, -5, -6, -7, -8, -0.5, -1.5, -2.5, -3.5}));
  EXPECT_EQ(alibi_slopes(6), powers_of_two({-2, -4, -6, -8, -1, -3}));
}

TEST(AlibiSlopes, FollowThePublishedRuleForAnyHeadCount) {
  for (int n = 1; n <= 128; ++n) EXPECT_EQ(alibi_slopes(n), published_slopes(n)) << n;
}

TEST(AlibiSlopes, NeedAHead) {
  for (const int n : {0, -3}) {
    try {
      alibi_slopes(n);
      ADD_FAILURE() << n;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "num_heads is " + std::to_string(n) + ", must be at least 1");
    }
  }
}

}  // namespace
}  // namespace attn
