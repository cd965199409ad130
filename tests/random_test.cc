#include "attn/random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "attn/error.h"
#include "attn/parallel.h"
#include "tests/scoped_workers.h"

namespace attn {
namespace {

constexpr std::uint64_t kSeed = 0x0123456789abcdef;

// The published answers of Random123 (kat_vectors, philox4x32-10).
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32_10({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Test vectors of the generator's specification.
struct Vector {
  std::uint64_t seed, index;
  std::uint32_t tensor, family;
  Words words;
  int u23, n;
  std::uint64_t f32, f16, bf16, e4m3fn, e5m2;
  std::uint32_t below_1000;
};

// clang-format off
const Vector kVectors[] = {
    {0, 0, 1, 1, {0xdedd2dc1, 0x8f19a45a, 0xf0b90613, 0x71220426},
     6217005, -289061, 0xbf0d24a0, 0xb869, 0xbf0d, 0xb1, 0xb8, 870},
    {0, 1, 1, 1, {0x4b25803a, 0x54262d6a, 0xd23270c3, 0x7c01f732},
     -3463808, -986181, 0xbff0c450, 0xbf86, 0xbff1, 0xbf, 0xc0, 293},
    {1, 0, 2, 2, {0xe45d5a30, 0xb1424e42, 0xeeefeced, 0x6898255b},
     6577498, 457435, 0x3f5f5b60, 0x3afb, 0x3f5f, 0x36, 0x3b, 892},
    {kSeed, 0, 1, 2, {0x382c3579, 0x5e9eaac1, 0x069a6f6e, 0x6704c726},
     -4707275, 734499, 0x3fb35230, 0x3d9b, 0x3fb3, 0x3b, 0x3e, 219},
    {kSeed, 0x3039, 2, 2, {0x37d4c276, 0xb6305f24, 0xc5e87362, 0x903597c8},
     -4729662, 238941, 0x3ee95740, 0x374b, 0x3ee9, 0x2f, 0x37, 218},
    {kSeed, 0x100000003, 3, 2, {0x6677915e, 0xe3da784f, 0x2061cb0f, 0x39d57306},
     -1673327, 48609, 0x3dbde100, 0x2def, 0x3dbe, 0x1c, 0x2e, 400},
    {0xffffffffffffffff, 0x10000000000, 16, 4, {0xe3a6ce41, 0x35f87fc5, 0x70f6082f, 0x80b2e0ee},
     6530766, -274291, 0xbf05ee60, 0xb82f, 0xbf06, 0xb0, 0xb8, 889},
    {kSeed, 7, 0, 0, {0x8e94991c, 0xb890a831, 0xdef850de, 0x552b7a90},
     955545, -693157, 0xbfa93a50, 0xbd4a, 0xbfa9, 0xbb, 0xbd, 556},
};
// clang-format on

Words words_of(const Vector& v) {
  return random_words(v.seed, v.index, static_cast<RandomTensor>(v.tensor), v.family);
}

TEST(Random, GivesTheWordsOfTheSpecification) {
  for (const Vector& v : kVectors) EXPECT_EQ(words_of(v), v.words) << v.index;
}

TEST(Random, UniformGivesTheIntegersOfTheSpecification) {
  for (const Vector& v : kVectors) {
    EXPECT_EQ(uniform(v.words, DType::kF32), std::ldexp(v.u23, -23));
    EXPECT_EQ(uniform(v.words, DType::kF64), std::ldexp(v.u23, -23));
  }
}

TEST(Random, BellGivesTheIntegersAndCodesOfTheSpecification) {
  for (const Vector& v : kVectors) {
    const double x = bell(v.words);
    EXPECT_EQ(x, std::ldexp(v.n, -19));
    EXPECT_EQ(encode(DType::kF32, x, Overflow::kSaturate), v.f32);
    EXPECT_EQ(encode(DType::kF16, x, Overflow::kSaturate), v.f16);
    EXPECT_EQ(encode(DType::kBF16, x, Overflow::kSaturate), v.bf16);
    EXPECT_EQ(encode(DType::kF8E4M3FN, x, Overflow::kSaturate), v.e4m3fn);
    EXPECT_EQ(encode(DType::kF8E5M2, x, Overflow::kSaturate), v.e5m2);
  }
}

TEST(Random, BelowGivesTheNumbersOfTheSpecification) {
  for (const Vector& v : kVectors) EXPECT_EQ(below(v.words, 1000), v.below_1000);
}

TEST(Random, CoordinatesGiveTheIndexOfTheSpecification) {
  EXPECT_EQ(random_index(3, 1000, 5, 17), 0xc0003e8005011u);
  const Words words = random_words(kSeed, random_index(3, 1000, 5, 17), RandomTensor::kKey, 2);
  EXPECT_EQ(words, (Words{0xa5b0fb95, 0x64d76716, 0x5d80440d, 0xd7f2e493}));
  EXPECT_EQ(bell(words), std::ldexp(-761297, -19));
}

TEST(Random, PositionWrapsAt2To26) {
  EXPECT_EQ(random_index(0, (1 << 26) + 5, 0, 0), random_index(0, 5, 0, 0));
  EXPECT_EQ(random_index(0, -1, 0, 0), std::uint64_t{(1 << 26) - 1} << 24);
}

TEST(Random, LargestCoordinatesFillTheIndex) {
  EXPECT_EQ(random_index((1 << 14) - 1, (1 << 26) - 1, 4095, 4095), ~std::uint64_t{0});
}

TEST(Random, RejectsCoordinatesThatWouldCollide) {
  EXPECT_THROW(random_index(1 << 14, 0, 0, 0), Error);
  EXPECT_THROW(random_index(-1, 0, 0, 0), Error);
  EXPECT_THROW(random_index(0, 0, 4096, 0), Error);
  EXPECT_THROW(random_index(0, 0, 0, 4096), Error);
  EXPECT_THROW(random_index(0, 0, 0, -1), Error);
}

TEST(Random, DerivedSeedsAreThoseOfTheSpecification) {
  EXPECT_EQ(derived_seed(1, 0), 0xe50a0ebce3e80670u);
  EXPECT_EQ(derived_seed(1, 1), 0xdfc5ccbeac08141bu);
}

TEST(Random, PermutationsAreThoseOfTheSpecification) {
  const auto permutation = [](std::uint64_t seed) {
    return random_permutation(seed, 8, RandomTensor::kBlockTable, 0);
  };
  EXPECT_EQ(permutation(1), (std::vector<std::int32_t>{4, 5, 7, 6, 3, 0, 2, 1}));
  EXPECT_EQ(permutation(kSeed), (std::vector<std::int32_t>{6, 7, 2, 5, 3, 4, 1, 0}));
}

TEST(Random, PermutationOfNothingOrOneIsTrivial) {
  EXPECT_TRUE(random_permutation(1, 0, RandomTensor::kBlockTable, 0).empty());
  EXPECT_EQ(random_permutation(1, 1, RandomTensor::kBlockTable, 0), std::vector<std::int32_t>{0});
}

TEST(Random, ScaleIsThatOfTheSpecification) {
  EXPECT_EQ(random_scale(random_words(kSeed, 0, RandomTensor::kKScale, 0)), std::ldexp(151, -6));
}

// Corner words, by hand from the maps' formulas.
TEST(Random, MapsReachTheirEnds) {
  constexpr Words kZeros = {0, 0, 0, 0};
  constexpr Words kOnes = {~0u, ~0u, ~0u, ~0u};
  EXPECT_EQ(uniform(kZeros, DType::kF64), -1.0);
  EXPECT_EQ(uniform(kOnes, DType::kF32), 1.0 - 0x1p-23);
  EXPECT_EQ(bell(kZeros), std::ldexp(512.0 * -6138 - 255, -19));
  EXPECT_EQ(bell(kOnes), std::ldexp(512.0 * 6138 + 255, -19));
  EXPECT_EQ(small_integer(kZeros), -8);
  EXPECT_EQ(small_integer(kOnes), 7);
  EXPECT_EQ(random_scale(kZeros), 0.25);
  EXPECT_EQ(random_scale(kOnes), 255.0 / 64.0);
  EXPECT_EQ(decode(DType::kF8E4M3FN, random_block_scale(kZeros)), 0.5);
  EXPECT_EQ(decode(DType::kF8E4M3FN, random_block_scale(kOnes)), 1.875);
  EXPECT_EQ(below(kOnes, 7), 6u);
  EXPECT_EQ(below(kZeros, 7), 0u);
}

TEST(Random, MaskBitIsHiddenForTheLowestQuarterOfTheFirstWord) {
  EXPECT_FALSE(random_mask_bit({0, ~0u, ~0u, ~0u}));
  EXPECT_FALSE(random_mask_bit({0x3fffffff, 0, 0, 0}));
  EXPECT_TRUE(random_mask_bit({0x40000000, 0, 0, 0}));
  EXPECT_TRUE(random_mask_bit({~0u, 0, 0, 0}));
}

class UniformOf : public testing::TestWithParam<DType> {};

TEST_P(UniformOf, IsExactInItsTypeAndBelowOne) {
  std::set<double> values;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const double x = uniform(random_words(2, i, RandomTensor::kQuery, 1), GetParam());
    EXPECT_GE(x, -1.0);
    EXPECT_LT(x, 1.0);
    EXPECT_EQ(decode(GetParam(), encode(GetParam(), x, Overflow::kInfinity)), x);
    values.insert(x);
  }
  const bool eight_bits = bits(GetParam()) == 8;
  const std::size_t all = GetParam() == DType::kF8E5M2 ? 16 : 32;
  EXPECT_TRUE(eight_bits ? values.size() == all : values.size() > 300) << values.size();
}

INSTANTIATE_TEST_SUITE_P(Types, UniformOf,
                         testing::Values(DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                                         DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST(Random, UniformHasNoMapForIntegers) { EXPECT_THROW(uniform({}, DType::kI32), Error); }

// A sum of twelve uniform numbers has mean 0, standard deviation 1, kurtosis 3 - 1.2 / 12 = 2.9;
// the limits are about four standard errors of 20,000 draws.
TEST(Random, BellHasTheMomentsOfTwelveUniformNumbers) {
  constexpr int kDraws = 20000;
  double sum = 0.0, squares = 0.0, fourths = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = bell(random_words(kSeed, random_index(0, i, 0, 0), RandomTensor::kKey, 2));
    EXPECT_TRUE(x != 0.0 && std::fabs(x) < 6.0) << x;
    EXPECT_EQ(static_cast<double>(static_cast<float>(x)), x);
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }
  const double variance = squares / kDraws;
  EXPECT_NEAR(sum / kDraws, 0.0, 0.03);
  EXPECT_NEAR(std::sqrt(variance), 1.0, 0.02);
  EXPECT_NEAR(fourths / kDraws / (variance * variance), 2.9, 0.14);
}

TEST(Random, EveryArgumentChangesTheWords) {
  const Words words = random_words(1, 2, RandomTensor::kKey, 3);
  EXPECT_NE(words, random_words(2, 2, RandomTensor::kKey, 3));
  EXPECT_NE(words, random_words(1 + (std::uint64_t{1} << 32), 2, RandomTensor::kKey, 3));
  EXPECT_NE(words, random_words(1, 3, RandomTensor::kKey, 3));
  EXPECT_NE(words, random_words(1, 2 + (std::uint64_t{1} << 32), RandomTensor::kKey, 3));
  EXPECT_NE(words, random_words(1, 2, RandomTensor::kValue, 3));
  EXPECT_NE(words, random_words(1, 2, RandomTensor::kKey, 4));
}

TEST(Random, TensorsHaveTheNumbersOfTheSpecification) {
  EXPECT_EQ(static_cast<int>(RandomTensor::kValue), 3);
  EXPECT_EQ(static_cast<int>(RandomTensor::kQqBias), 7);
  EXPECT_EQ(static_cast<int>(RandomTensor::kVScale), 13);
  EXPECT_EQ(static_cast<int>(RandomTensor::kLseParts), 19);
  EXPECT_EQ(static_cast<int>(RandomTensor::kSlotMapping), 22);
  EXPECT_EQ(static_cast<int>(RandomTensor::kNeedle), 23);
}

TEST(Random, IsTheSameForAnyNumberOfThreads) {
  const auto draw = [](int workers) {
    const ScopedWorkers scope(workers);
    std::vector<double> values(5000);
    parallel_for(5000, [&](std::int64_t i, int) {
      values[static_cast<std::size_t>(i)] =
          bell(random_words(9, static_cast<std::uint64_t>(i), RandomTensor::kQuery, 2));
    });
    return values;
  };
  EXPECT_EQ(draw(1), draw(8));
}

}  // namespace
}  // namespace attn
