// Drawing of questions against an independent implementation of its rules in Python (its own
// Philox, maps and roundings, in exact fractions): hashes of 192 elements each.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "attn/error.h"
#include "golden/questions/block_plan.h"
#include "golden/questions/cache_rows.h"
#include "golden/questions/draw.h"
#include "golden/questions/fill.h"

namespace attn::questions {
namespace {

constexpr std::uint64_t kSeed = 0x0123456789abcdef;

// FNV-1a over 32-bit little-endian codes of request 2, head 1, positions 0 ... 11, dims 0 ... 15.
std::uint64_t hash(const std::function<std::uint64_t(const Place&)>& code) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (std::int64_t t = 0; t < 12; ++t) {
    for (std::int64_t d = 0; d < 16; ++d) {
      const std::uint64_t bits = code({2, t, 1, d});
      for (int byte = 0; byte < 4; ++byte) {
        h = (h ^ (bits >> (8 * byte) & 0xFF)) * 0x100000001b3;
      }
    }
  }
  return h;
}

TEST(QuestionDraw, FamiliesAreTheBitsOfTheirRules) {
  struct Row {
    Family family;
    std::uint64_t hashes[3];  // query, key, value; f32, scale 1/4, values of 16
  };
  const Row rows[] = {
      {Family::kUniform, {0x00b0e141a89c11dd, 0x737ce6da61f61e81, 0x700c1e2a0e5bdf0f}},
      {Family::kBell, {0x2bfc77fd508004c6, 0x5155730f5547d8dd, 0xe4c4bc977fd37952}},
      {Family::kNeedleVisible, {0xcd2d44c21be36c3c, 0xd74fe9584c1e9153, 0x0782f90562a228ec}},
      {Family::kNeedleHidden, {0xeb93a6ad79b17d71, 0x866ed8853eac9494, 0xf3a60624f49ae225}},
      {Family::kNegativeLogits, {0x4c61b6ea4c986b80, 0x564aa30c7f7b8488, 0xd94081008c492639}},
      {Family::kLargeLogits, {0x97efaea7d857d011, 0xf301c55ae24d5928, 0xaa0e96a7476105c5}},
      {Family::kExactLane, {0x9fa9e040e0eedf25, 0x7dbd092ecdf5e419, 0xd849fbffa9272b3b}},
      {Family::kMembership, {0x9fa9e040e0eedf25, 0x8b44bbe1ceeb994e, 0x3548cfb00377411f}},
      {Family::kWeights, {0x300975ebbdc85f25, 0xaff7bf75c7877e7b, 0xcc49fc98b57fa135}},
      {Family::kRepeatedKeys, {0x63f3723548125c55, 0x76f5b4c670db0ae4, 0x01a23944acd39f52}},
      {Family::kCancellingValues, {0xaa2afe6dc08c7a21, 0x621127a79297a7d2, 0xf0fa7e77950056f5}},
      {Family::kDenormalValues, {0x9c79b8afef951a3e, 0xe149eef2ed141e34, 0x6ef42f7c2157b8cc}},
      {Family::kExtremeValues, {0x841de677fd501dca, 0xa8c70256c733f5dd, 0x18e8189521a2d3d2}},
      {Family::kChannelOutliers, {0xa3aef42367ec884f, 0xfb5db5caf3b3b871, 0xe489083fca8fd945}},
      {Family::kAllCodes, {0xe45152e79fe0370c, 0xd25ca1203f2014cc, 0xee3f6fa2aedc020f}},
      {Family::kHalfUlpWeights, {0xb37108674933f165, 0x5335290de9213eaf, 0xa2236adeb1e9c7af}},
      {Family::kConstantValues, {0x773e38ce83fc5fa4, 0x733af9aa58512127, 0xeaf6d73f0ad4759d}},
      {Family::kPoisoned, {0x03b7f6dbd22dba07, 0xe5265881ea8e85a7, 0x3f65d82e99c22495}},
      {Family::kPermutedBlocks, {0xc9ee7b9cce86c5f2, 0x9f8567390cd136bb, 0x65ffd746668bf716}},
  };
  for (const Row& row : rows) {
    const FamilyValues values({row.family, kSeed}, 0.25, 16);
    EXPECT_EQ(hash([&](const Place& at) {
                return encode(DType::kF32, values.query(at, DType::kF32), Overflow::kSaturate);
              }),
              row.hashes[0])
        << name(row.family);
    EXPECT_EQ(hash([&](const Place& at) { return values.key_code(at, DType::kF32); }),
              row.hashes[1])
        << name(row.family);
    EXPECT_EQ(hash([&](const Place& at) { return values.value_code(at, DType::kF32); }),
              row.hashes[2])
        << name(row.family);
  }
}

TEST(QuestionDraw, TypesAreTheBitsOfTheirRules) {
  struct Row {
    DType type;
    Family family;
    std::uint64_t hash;
  };
  const Row rows[] = {
      {DType::kF32, Family::kBell, 0x5155730f5547d8dd},
      {DType::kF32, Family::kUniform, 0x737ce6da61f61e81},
      {DType::kF16, Family::kBell, 0xb9771f7b91be9244},
      {DType::kF16, Family::kUniform, 0xf9a051385edbf5f7},
      {DType::kBF16, Family::kBell, 0x72cb3d77bff5736a},
      {DType::kBF16, Family::kUniform, 0xbded838c05e2d737},
      {DType::kF8E4M3FN, Family::kBell, 0x611517bf504ba94f},
      {DType::kF8E4M3FN, Family::kUniform, 0x4861894c0802f4cb},
      {DType::kF8E5M2, Family::kBell, 0x54a9f4367012c4b1},
      {DType::kF8E5M2, Family::kUniform, 0xaa2dadd7720101eb},
      {DType::kF8E4M3FNUZ, Family::kBell, 0x41df3efec2d29d76},
      {DType::kF8E4M3FNUZ, Family::kUniform, 0x871c9b99926c97f3},
      {DType::kF8E4M3FN, Family::kAllCodes, 0xafba8479ec89a555},
      {DType::kF8E5M2, Family::kAllCodes, 0x4ded63f39c2b0055},
      {DType::kF8E4M3FNUZ, Family::kAllCodes, 0x1c0851d354361a95},
      {DType::kI8, Family::kAllCodes, 0x1c0851d354361a95},
  };
  for (const Row& row : rows) {
    const FamilyValues values({row.family, kSeed}, 0.25, 16);
    EXPECT_EQ(hash([&](const Place& at) { return values.key_code(at, row.type); }), row.hash)
        << attn::name(row.type) << " " << name(row.family);
  }
}

// Published test vectors: coordinates (3, 1000, 5, 17), tensor 2, family 2; scale of tensor 12.
TEST(QuestionDraw, CoordinatesAreThePublishedOnes) {
  const Source source = {Family::kBell, kSeed};
  const Words expected = {0xa5b0fb95, 0x64d76716, 0x5d80440d, 0xd7f2e493};
  EXPECT_EQ(words_at(source, RandomTensor::kKey, {3, 1000, 5, 17}), expected);
  EXPECT_EQ(FamilyValues(source, 1.0, 8).key({3, 1000, 5, 17}, DType::kF32),
            std::ldexp(-761297.0, -19));
  EXPECT_EQ(random_scale(plain_words_at(source, RandomTensor::kKScale, {})), 151.0 / 64.0);
}

TEST(QuestionDraw, ANeedleRaisesDimZeroToThirtyTwoOrMore) {
  const FamilyValues values({Family::kNeedleVisible, kSeed}, 0.25, 8);
  EXPECT_EQ(values.key({0, 5, 0, 0}, DType::kF32, true), 32.0);  // 4 * 32 * 1/4 = 32
  EXPECT_EQ(values.key({0, 5, 0, 0}, DType::kF32), 0.0);
  EXPECT_EQ(values.query({0, 5, 0, 0}, DType::kF32), 4.0);
  EXPECT_EQ(FamilyValues({Family::kLargeLogits, kSeed}, 64.0, 8).key({}, DType::kF32), 0.5);
}

TEST(QuestionDraw, WeightsNeedAScaleThatIsAPowerOfTwo) {
  EXPECT_THROW(FamilyValues({Family::kWeights, 1}, 0.3, 8), Error);
  EXPECT_THROW(FamilyValues({Family::kHalfUlpWeights, 1}, -0.5, 8), Error);
}

TEST(QuestionDraw, WhereSaysFamilyAndSeed) {
  EXPECT_EQ(where({Family::kNeedleHidden, 0x2a}), "needle_hidden seed 0x2a");
}

// The published permutation of 8 for seed 1: 4 5 7 6 3 0 2 1.
TEST(BlockPlan, PermutedBlocksBeginAtPhysicalBlockOne) {
  const BlockPlan plan({17, 12}, {.permuted = true, .unused_tail = true}, 1);
  const std::int64_t expected[2][6] = {{5, 6, 8, 7, 4, kUnusedBlock},
                                       {1, 3, 2, kUnusedBlock, kUnusedBlock, kUnusedBlock}};
  ASSERT_EQ(plan.table().shape(), (std::vector<std::int64_t>{2, 6}));
  for (std::int64_t r = 0; r < 2; ++r) {
    for (std::int64_t j = 0; j < 6; ++j) {
      EXPECT_EQ(plan.table().value(r, j), static_cast<double>(expected[r][j])) << r << " " << j;
    }
  }
  EXPECT_EQ(plan.num_blocks(), 9);
  EXPECT_EQ(plan.slot(0, 9).block, 8);
  EXPECT_EQ(plan.slot(0, 9).slot, 1);
}

TEST(BlockPlan, SharedBlocksBelongToTheLowestRequest) {
  const BlockPlan plan({5, 9, 9}, {.shared_blocks = 2}, 1);
  const std::int64_t expected[3][3] = {{0, 1, 0}, {0, 1, 2}, {0, 1, 3}};
  for (std::int64_t r = 0; r < 3; ++r) {
    for (std::int64_t j = 0; j < 3; ++j) {
      EXPECT_EQ(plan.table().value(r, j), static_cast<double>(expected[r][j]));
    }
  }
  EXPECT_EQ(plan.owner(2, 7), 0);
  EXPECT_EQ(plan.owner(2, 8), 2);
}

TEST(BlockPlan, AKernelSeesEachBlockAsSeveral) {
  const BlockPlan plan({13}, {.block_size = 8, .permuted = true, .kernel_block_size = 4}, 1);
  const auto first = static_cast<std::int64_t>(plan.table().value(0, 0));
  const auto third = static_cast<std::int64_t>(plan.table().value(0, 2));
  EXPECT_EQ(plan.table().value(0, 1), static_cast<double>(first + 1));
  EXPECT_EQ(plan.table().value(0, 3), static_cast<double>(third + 1));
  EXPECT_EQ(first + third, 2 + 4);
  EXPECT_EQ(plan.num_blocks(), 6);
  EXPECT_EQ(plan.block_size(), 4);
}

TEST(CacheRows, CodesTimesTheScaleOfTheirTokenAreWithinAStepOfWhatWasDrawn) {
  const Source source = {Family::kBell, kSeed};
  const FamilyValues values(source, 0.25, 16);
  CacheSide side = {
      .seq_len = 6, .num_kv_heads = 2, .head_size = 16, .request_of = [](std::int64_t) {
        return std::int64_t{4};
      }};
  for (const DType type : {DType::kI8, DType::kF8E4M3FN}) {
    side.dtype = type;
    side.encoding = KvEncoding::kPerTokenHead;
    const CacheRows rows = draw_cache_rows(source, values, side);
    for (std::int64_t k = 0; k < 6; ++k) {
      double largest = 0.0;
      for (std::int64_t d = 0; d < 16; ++d) {
        largest = std::fmax(largest, std::fabs(values.key({4, k, 1, d}, DType::kF32)));
      }
      const double scale = rows.token_scale.value(k, 1);
      const double most = type == DType::kI8 ? 127.0 : 448.0;
      EXPECT_NEAR(scale, largest / most, 1e-7 * scale);
      for (std::int64_t d = 0; d < 16; ++d) {
        const double x = values.key({4, k, 1, d}, DType::kF32);
        const double step = type == DType::kI8 ? 0.51 * scale : std::fabs(x) / 15.9 + scale / 512;
        EXPECT_NEAR(rows.codes.value(k, 1, d) * scale, x, step);
      }
    }
  }
}

TEST(Fill, CodesAreWhatTheirNameSays) {
  EXPECT_TRUE(std::isnan(decode(DType::kBF16, fill_code(Fill::kNaN, DType::kBF16))));
  EXPECT_EQ(decode(DType::kF16, fill_code(Fill::kLargest, DType::kF16)), 65504.0);
  EXPECT_EQ(decode(DType::kF32, fill_code(Fill::kMinusInfinity, DType::kF32)), -HUGE_VAL);
  EXPECT_EQ(fill_code(Fill::kZero, DType::kF32), 0U);
}

}  // namespace
}  // namespace attn::questions
