// Codes that no case holds, since their makers disagree about details: what all agree on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "attn/capabilities.h"
#include "attn/nvfp4_swizzle.h"
#include "reference/block_quantize.h"
#include "reference/quantize.h"
#include "tests/error_text.h"
#include "tests/variant_batch.h"

namespace attn {
namespace {

constexpr double kE2M1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
constexpr float kFloatNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kFloatInf = std::numeric_limits<float>::infinity();

double e2m1(unsigned code) { return (code & 8) != 0 ? -kE2M1[code & 7] : kE2M1[code & 7]; }

// Sign, 4 bits of exponent with bias 7, 3 bits of fraction; no infinities.
double e4m3(unsigned code) {
  const auto exponent = static_cast<int>((code >> 3) & 15);
  const int fraction = static_cast<int>(code & 7);
  if ((code & 0x7F) == 0x7F) return kFloatNaN;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

// How far the nearest of the codes [0, count) under a scale is from x.
double nearest(double x, double scale, unsigned count, double (*value)(unsigned)) {
  double least = kFloatInf;
  for (unsigned code = 0; code < count; ++code) {
    const double distance = std::fabs(value(code) * scale - x);
    if (distance < least) least = distance;
  }
  return least;
}

// Slack for quotients rounded to float32 before the rounding to a code.
constexpr double kSlack = 1.0 + 1e-6;

using Block = std::array<float, 16>;

Block random_block(std::uint64_t i, double size) {
  Block x;
  for (std::size_t d = 0; d < x.size(); ++d) {
    x[d] = static_cast<float>(size * bell(random_words(i, d, RandomTensor::kValue, 4)));
  }
  return x;
}

void expect_nearest_codes(const reference::Nvfp4Block& block, const Block& x, double global) {
  const double largest = std::fabs(*std::max_element(
      x.begin(), x.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); }));
  const double wanted = largest / (6.0 * global);
  EXPECT_LE(std::fabs(e4m3(block.scale) - wanted),
            nearest(wanted, 1.0, 127, e4m3) * kSlack + 1e-6 * wanted);
  for (std::size_t d = 0; d < x.size(); ++d) {
    const double scale = e4m3(block.scale) * global;
    EXPECT_LE(std::fabs(e2m1(block.codes[d]) * scale - x[d]),
              nearest(x[d], scale, 16, e2m1) * kSlack + 1e-6 * std::fabs(x[d]));
  }
}

TEST(Nvfp4Write, RoundTripsValuesOnWhichEveryReadingAgrees) {
  // With a global scale of 1/2 every product and quotient is exact, in any order, and the block
  // scale needs no rounding.
  for (unsigned scale = 1; scale <= 0x7E; ++scale) {
    Block x;
    for (unsigned code = 0; code < 16; ++code) {
      x[code] = static_cast<float>(e2m1(code) * e4m3(scale) * 0.5);
    }
    const reference::Nvfp4Block block = reference::quantize_nvfp4(x, 2.0f);
    EXPECT_EQ(block.scale, scale);
    for (unsigned code = 0; code < 16; ++code) EXPECT_EQ(e2m1(block.codes[code]), e2m1(code));
  }
}

TEST(Nvfp4Write, StaysWithinHalfAStepElsewhere) {
  for (std::uint64_t i = 0; i < 500; ++i) {
    const float inverse_global = 1.0f / (0.3f + static_cast<float>(i % 7));
    const Block x = random_block(i, std::ldexp(1.0, static_cast<int>(i % 11) - 4));
    expect_nearest_codes(reference::quantize_nvfp4(x, inverse_global), x, 1.0 / inverse_global);
  }
}

TEST(Nvfp4Write, TiesOfTheBlockScaleGoToEven) {
  Block x{};
  x[3] = 6.0f * 1.0625f;  // between 1 and 1.125
  EXPECT_EQ(reference::quantize_nvfp4(x, 1.0f).scale, 0x38);
  x[3] = 6.0f * 1.1875f;  // between 1.125 and 1.25
  EXPECT_EQ(reference::quantize_nvfp4(x, 1.0f).scale, 0x3A);
}

TEST(Nvfp4Write, BlocksOfZerosAndOfLessThanTheLeastScaleAreZero) {
  Block x{};
  EXPECT_EQ(reference::quantize_nvfp4(x, 1.0f).scale, 0);
  x[0] = 5.9f * 0x1p-10f;  // the least scale is 2^-9
  x[9] = -x[0];
  const reference::Nvfp4Block block = reference::quantize_nvfp4(x, 1.0f);
  EXPECT_EQ(block.scale, 0);
  EXPECT_EQ(block.codes, (std::array<std::uint8_t, 16>{}));
}

TEST(Nvfp4Write, RejectsAGlobalScaleWithoutAnInverse) {
  for (const float inverse : {0.0f, -1.0f, kFloatInf, kFloatNaN}) {
    const std::string text = error_of([&] { reference::quantize_nvfp4(Block{}, inverse); });
    EXPECT_NE(text.find("must be positive and finite"), std::string::npos) << inverse;
  }
}

TEST(OutputNvfp4, StaysWithinHalfAStep) {
  for (std::uint64_t i = 0; i < 200; ++i) {
    // The factor that makes full use of the block scales for outputs up to 6.
    const float sf_scale = 448.0f * 6.0f / 6.0f;
    const Block x = random_block(1000 + i, 0.7);
    expect_nearest_codes(reference::quantize_nvfp4(x, sf_scale), x, 1.0 / sf_scale);
  }
}

TEST(OutputNvfp4, NaNStaysNaN) {
  Block x = random_block(1, 1.0);
  x[7] = kFloatNaN;
  const reference::Nvfp4Block block = reference::quantize_nvfp4(x, 1.0f);
  EXPECT_TRUE(std::isnan(e2m1(block.codes[7]) * e4m3(block.scale)));
}

TEST(OutputNvfp4, InfinitiesSaturate) {
  Block x = random_block(2, 1.0);
  x[4] = -kFloatInf;
  const reference::Nvfp4Block block = reference::quantize_nvfp4(x, 1.0f);
  EXPECT_EQ(e2m1(block.codes[4]) * e4m3(block.scale), -6.0 * 448.0);
}

std::vector<float> random_group(std::uint64_t i, std::size_t size) {
  std::vector<float> x;
  for (std::size_t d = 0; d < size; ++d) {
    x.push_back(static_cast<float>(
        std::ldexp(bell(random_words(i, d, RandomTensor::kKey, 5)), static_cast<int>(i % 13) - 6)));
  }
  return x;
}

TEST(OutputGroupFp8, StaysWithinHalfAStep) {
  for (const std::size_t size : {std::size_t{64}, std::size_t{128}}) {
    for (std::uint64_t i = 0; i < 26; ++i) {
      const std::vector<float> x = random_group(i, size);
      const reference::Fp8Group group = reference::quantize_fp8_group(x);
      ASSERT_EQ(group.codes.size(), size);
      double largest_code = 0.0;
      for (std::size_t d = 0; d < size; ++d) {
        EXPECT_LE(std::fabs(e4m3(group.codes[d]) * group.scale - x[d]),
                  nearest(x[d], group.scale, 256, e4m3) * kSlack + 1e-6 * std::fabs(x[d]));
        largest_code = std::max(largest_code, std::fabs(e4m3(group.codes[d])));
      }
      EXPECT_EQ(largest_code, 448.0);  // the scale is no larger than it must be
    }
  }
}

TEST(OutputGroupFp8, StaysWithinHalfAStepUnderAPowerOfTwoAsScale) {
  for (std::uint64_t i = 0; i < 26; ++i) {
    const std::vector<float> x = random_group(100 + i, 64);
    float largest = 0.0f;
    for (const float value : x) largest = std::max(largest, std::fabs(value));
    const double scale = std::exp2(std::ceil(std::log2(std::max(largest / 448.0, 1e-4))));
    for (const float value : x) {
      const auto code = static_cast<unsigned>(
          reference::quantize(DType::kF8E4M3FN, value, static_cast<float>(scale)));
      EXPECT_LE(std::fabs(e4m3(code) * scale - value),
                nearest(value, scale, 256, e4m3) * kSlack + 1e-6 * std::fabs(value));
    }
  }
}

TEST(OutputGroupFp8, NaNStaysNaNAndInfinitiesSaturate) {
  const reference::Fp8Group group =
      reference::quantize_fp8_group(std::vector<float>{kFloatNaN, 448.0f, -kFloatInf, 0.0f, 2.0f});
  EXPECT_EQ(group.scale, 1.0f);
  EXPECT_TRUE(std::isnan(e4m3(group.codes[0])));
  EXPECT_EQ(e4m3(group.codes[1]), 448.0);
  EXPECT_EQ(e4m3(group.codes[2]), -448.0);
  EXPECT_EQ(e4m3(group.codes[3]), 0.0);
  EXPECT_EQ(e4m3(group.codes[4]), 2.0);
}

TEST(OutputGroupFp8, GroupOfZerosIsZero) {
  const reference::Fp8Group group = reference::quantize_fp8_group(std::vector<float>(64, 0.0f));
  EXPECT_EQ(group.codes, std::vector<std::uint8_t>(64, 0));
  EXPECT_GT(group.scale, 0.0f);
}

TEST(Int4PerTokenHead, EveryCodeIsTwosComplementBothWays) {
  for (int value = -8; value <= 7; ++value) {
    const std::uint64_t code = value < 0 ? 16 + value : value;
    EXPECT_EQ(decode(DType::kI4, code), value);
    EXPECT_EQ(encode(DType::kI4, value, Overflow::kSaturate), code);
  }
}

// One slot whose 16 elements are the codes 0 ... 15, scale 0.25.
TEST(Int4PerTokenHead, LowNibbleIsTheEvenElement) {
  TensorPool pool;
  KvCacheView kv;
  kv.layout = KvLayout::kPaged;
  kv.encoding = KvEncoding::kPerTokenHead;
  kv.key = kv.value =
      pool.codes(DType::kI4, {1, 1, 1, 8},
                 std::vector<std::uint64_t>{0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE});
  kv.k_scale_cache = kv.v_scale_cache = pool.values(DType::kF32, {1, 1, 1}, {0.25});
  kv.block_table = pool.values(DType::kI32, {1, 1}, {0});
  for (std::int64_t d = 0; d < 16; ++d) {
    const double expected = 0.25 * static_cast<double>(d < 8 ? d : d - 16);
    EXPECT_EQ(decode_key(kv, 0, 0, 0, d), expected);
    EXPECT_EQ(decode_value(kv, 0, 0, 0, d), expected);
  }
}

// A side of a cache of bytes with two codes each, and the same in doubles.
struct Int4Side {
  Int4Side(std::int64_t num_blocks, RandomTensor which)
      : codes(DType::kI4, {num_blocks, 2, 1, 2}),
        scales(DType::kF32, {num_blocks, 2, 1}),
        decoded(DType::kF64, {num_blocks, 2, 1, 4}) {
    for (std::int64_t slot = 0; slot < scales.num_units(); ++slot) {
      const float scale = static_cast<float>(
          random_scale(random_words(5, static_cast<std::uint64_t>(slot), which, 6)));
      scales.set(scale, slot / 2, slot % 2, 0);
      for (std::int64_t byte = 0; byte < 2; ++byte) {
        const auto index = static_cast<std::uint64_t>(2 * slot + byte);
        const std::uint64_t pair = below(random_words(6, index, which, 6), 256);
        codes.set_code(static_cast<std::int64_t>(index), pair);
        const auto low = static_cast<int>(pair & 15);
        const auto high = static_cast<int>(pair >> 4);
        decoded.set((low < 8 ? low : low - 16) * double{scale}, slot / 2, slot % 2, 0, 2 * byte);
        decoded.set((high < 8 ? high : high - 16) * double{scale}, slot / 2, slot % 2, 0,
                    2 * byte + 1);
      }
    }
  }
  HostTensor codes, scales, decoded;
};

AttentionOp int4_attention(const PagedBatch& batch, const Int4Side& key, const Int4Side& value) {
  AttentionOp op = batch.op();
  op.kv.encoding = KvEncoding::kPerTokenHead;
  op.kv.key = key.codes.view();
  op.kv.value = value.codes.view();
  op.kv.k_scale_cache = key.scales.view();
  op.kv.v_scale_cache = value.scales.view();
  return op;
}

TEST(Int4PerTokenHead, AttentionIsThatOverTheDecodedValues) {
  const PagedBatch batch({{2, 5}, {1, 4}});
  const Int4Side key(batch.key.shape()[0], RandomTensor::kKey);
  const Int4Side value(batch.key.shape()[0], RandomTensor::kValue);
  AttentionOp decoded = batch.op();
  decoded.kv.key = key.decoded.view();
  decoded.kv.value = value.decoded.view();
  const OperationAnswer answer{int4_attention(batch, key, value)};
  const OperationAnswer expected{decoded};
  EXPECT_EQ(answer.codes("out"), expected.codes("out"));
  EXPECT_EQ(answer.codes("lse"), expected.codes("lse"));
}

TEST(Int4PerTokenHead, IsRefusedByABackendThatDoesNotListItAndByWrites) {
  const PagedBatch batch({{1, 2}});
  const Int4Side side(1, RandomTensor::kKey);
  const AttentionOp op = int4_attention(batch, side, side);
  Capabilities capabilities = make_reference_backend()->capabilities();
  std::erase(capabilities.kv_dtypes, DType::kI4);
  EXPECT_EQ(
      unsupported_reasons(capabilities, AttentionProblem(op)),
      (std::vector<std::string>{"key dtype i4 not supported", "value dtype i4 not supported"}));
  const HostTensor rows(DType::kF32, {1, 1, 2});
  const HostTensor slots(DType::kI64, {1});
  CacheWriteOp write;
  write.key = write.value = rows.view();
  write.slot_mapping = slots.view();
  write.cache = op.kv;
  write.cache.block_table = TensorView{};
  EXPECT_EQ(error_of([&] { AttentionProblem{write}; }),
            "a cache with a scale per token and head is i8 or f8_e4m3fn, not i4[1,2,1,2]");
}

TEST(Nvfp4Swizzle, EqualsTheFormulaWorkedByHand) {
  // 8 slots, 8 groups: two groups share a row of a tile.
  const ScaleIndex of_slot_1[] = {{0, 1}, {0, 5}, {1, 1}, {1, 5}, {2, 1}, {2, 5}, {3, 1}, {3, 5}};
  const ScaleIndex of_slot_6[] = {{4, 2}, {4, 6}, {5, 2}, {5, 6}, {6, 2}, {6, 6}, {7, 2}, {7, 6}};
  for (std::int64_t group = 0; group < 8; ++group) {
    EXPECT_EQ(swizzled({1, group}, 8, 8), of_slot_1[group]);
    EXPECT_EQ(swizzled({6, group}, 8, 8), of_slot_6[group]);
  }
  // 4 slots, 4 groups: one tile, transposed.
  for (std::int64_t slot = 0; slot < 4; ++slot) {
    for (std::int64_t group = 0; group < 4; ++group) {
      EXPECT_EQ(swizzled({slot, group}, 4, 4), (ScaleIndex{group, slot}));
    }
  }
}

TEST(Nvfp4Swizzle, IsABijectionOfThePage) {
  for (const std::int64_t block_size : {4, 8, 16, 64}) {
    for (const std::int64_t num_groups : {4, 8, 12, 16}) {
      std::set<std::pair<std::int64_t, std::int64_t>> places;
      for (std::int64_t slot = 0; slot < block_size; ++slot) {
        for (std::int64_t group = 0; group < num_groups; ++group) {
          const ScaleIndex to = swizzled({slot, group}, block_size, num_groups);
          EXPECT_TRUE(to.slot >= 0 && to.slot < block_size);
          EXPECT_TRUE(to.group >= 0 && to.group < num_groups);
          places.emplace(to.slot, to.group);
        }
      }
      EXPECT_EQ(static_cast<std::int64_t>(places.size()), block_size * num_groups);
    }
  }
}

TEST(Nvfp4Swizzle, RejectsPagesThatAreNoTilesAndPlacesOutside) {
  EXPECT_EQ(error_of([] {
              swizzled({0, 0}, 6, 4);
            }),
            "block_size 6 and num_groups 4 must be multiples of 4");
  EXPECT_EQ(error_of([] {
              swizzled({0, 0}, 4, 2);
            }),
            "block_size 4 and num_groups 2 must be multiples of 4");
  EXPECT_EQ(error_of([] { swizzled({4, 0}, 4, 4); }), "(4, 0) is outside [4, 4]");
  EXPECT_EQ(error_of([] { swizzled({0, -1}, 4, 4); }), "(0, -1) is outside [4, 4]");
}

}  // namespace
}  // namespace attn
