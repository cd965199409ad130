#include "attn/kv_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "attn/error.h"
#include "tests/tensor_pool.h"

namespace attn {
namespace {

constexpr double kE2M1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};

std::vector<double> counted(std::size_t n, double from = 0.0) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), from);
  return values;
}

std::vector<std::uint64_t> all_bytes() {
  std::vector<std::uint64_t> bytes(256);
  std::iota(bytes.begin(), bytes.end(), 0);
  return bytes;
}

// Two requests; request 0 in blocks 2, 0, request 1 in block 1; 2 slots a block.
KvCacheView paged_view(TensorPool& pool) {
  KvCacheView kv;
  kv.layout = KvLayout::kPaged;
  kv.block_table = pool.values(DType::kI32, {2, 2}, {2, 0, 1, 2147480000});
  return kv;
}

TEST(KvCache, NamesAreThoseOfCaseFiles) {
  EXPECT_EQ(name(KvLayout::kVarlen), "varlen");
  EXPECT_EQ(name(KvLayout::kPaged), "paged");
  EXPECT_EQ(name(KvLayout::kPacked), "paged_packed");
  EXPECT_EQ(name(KvEncoding::kPlain), "plain");
  EXPECT_EQ(name(KvEncoding::kPerTokenHead), "per-token-head");
  EXPECT_EQ(name(KvEncoding::kNvfp4), "nvfp4");
  EXPECT_EQ(name(KvEncoding::kFp8DsMla), "fp8_ds_mla");
}

TEST(KvCache, SlotOfAPagedPositionGoesThroughTheTable) {
  TensorPool pool;
  KvCacheView kv = paged_view(pool);
  kv.key = pool.zeros(DType::kF32, {3, 2, 1, 1});
  EXPECT_EQ(kv_slot(kv, 0, 0).block, 2);
  EXPECT_EQ(kv_slot(kv, 0, 1).slot, 1);
  EXPECT_EQ(kv_slot(kv, 0, 3).block, 0);
  EXPECT_EQ(kv_slot(kv, 0, 3).slot, 1);
  EXPECT_EQ(kv_slot(kv, 1, 0).block, 1);
}

TEST(KvCache, SlotOfAVarlenPositionIsARow) {
  TensorPool pool;
  KvCacheView kv;
  kv.key = pool.zeros(DType::kF32, {5, 1, 1});
  kv.kv_start_loc = pool.values(DType::kI32, {3}, {0, 2, 5});
  EXPECT_EQ(kv_slot(kv, 1, 2).block, 4);
  EXPECT_EQ(kv_slot(kv, 1, 2).slot, 0);
}

TEST(KvCache, VarlenReadsTheRowsOfItsRequest) {
  TensorPool pool;
  KvCacheView kv;
  kv.kv_start_loc = pool.values(DType::kI32, {3}, {0, 2, 5});
  kv.key = pool.values(DType::kF32, {5, 2, 2}, counted(20));
  kv.value = pool.values(DType::kF32, {5, 2, 3}, counted(30, 100));
  EXPECT_EQ(decode_key(kv, 0, 1, 0, 1), 5.0);      // row 1, head 0
  EXPECT_EQ(decode_key(kv, 1, 2, 1, 0), 18.0);     // row 4, head 1
  EXPECT_EQ(decode_value(kv, 1, 0, 1, 2), 117.0);  // row 2, head 1
}

TEST(KvCache, PagedReadsBlockSlotHeadDim) {
  TensorPool pool;
  KvCacheView kv = paged_view(pool);
  kv.key = pool.values(DType::kF32, {3, 2, 2, 2}, counted(24));
  kv.value = pool.values(DType::kF32, {3, 2, 2, 1}, counted(12, 100));
  EXPECT_EQ(decode_key(kv, 0, 1, 1, 0), 22.0);     // block 2, slot 1
  EXPECT_EQ(decode_key(kv, 0, 2, 0, 1), 1.0);      // block 0, slot 0
  EXPECT_EQ(decode_value(kv, 1, 1, 0, 0), 106.0);  // block 1, slot 1
}

TEST(KvCache, HndIsTheSameViewWithOtherStrides) {
  TensorPool pool;
  KvCacheView kv = paged_view(pool);
  kv.key = swap_axes(pool.values(DType::kF32, {3, 2, 2, 2}, counted(24)), 1, 2);
  kv.value = kv.key;
  EXPECT_EQ(decode_key(kv, 0, 1, 0, 1), 19.0);    // memory [2][head 0][slot 1][1]
  EXPECT_EQ(decode_value(kv, 1, 0, 1, 0), 12.0);  // memory [1][head 1][slot 0][0]
}

TEST(KvCache, PackedRowsHoldKeyThenValue) {
  TensorPool pool;
  KvCacheView kv = paged_view(pool);
  kv.layout = KvLayout::kPacked;
  const TensorView rows = pool.values(DType::kF32, {3, 2, 1, 5}, counted(30));  // D 2, Dv 3
  kv.key = slice(rows, 3, 0, 2);
  kv.value = slice(rows, 3, 2, 3);
  EXPECT_EQ(decode_key(kv, 0, 0, 0, 1), 21.0);
  EXPECT_EQ(decode_value(kv, 0, 0, 0, 0), 22.0);
  EXPECT_EQ(decode_value(kv, 0, 3, 0, 2), 9.0);
}

TEST(KvCache, AnAbsentScaleIsOne) {
  TensorPool pool;
  KvCacheView kv = paged_view(pool);
  kv.key = kv.value = pool.values(DType::kF8E5M2, {3, 2, 1, 1}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(decode_key(kv, 0, 0, 0, 0), 5.0);
  EXPECT_EQ(decode_value(kv, 1, 1, 0, 0), 4.0);
}

TEST(KvCache, ScalesArePerTensorHeadOrRequestAndHead) {
  TensorPool pool;
  KvCacheView kv = paged_view(pool);
  kv.key = kv.value = pool.values(DType::kF16, {3, 2, 2, 1}, std::vector<double>(12, 3.0));
  kv.k_scale = pool.values(DType::kF32, {1}, {0.5});
  kv.v_scale = pool.values(DType::kF32, {2}, {2, -4});
  EXPECT_EQ(decode_key(kv, 1, 0, 1, 0), 1.5);
  EXPECT_EQ(decode_value(kv, 1, 0, 0, 0), 6.0);
  EXPECT_EQ(decode_value(kv, 1, 0, 1, 0), -12.0);
  kv.k_scale = pool.values(DType::kF32, {2, 2}, {1, 2, 4, 0});
  EXPECT_EQ(decode_key(kv, 0, 0, 1, 0), 6.0);
  EXPECT_EQ(decode_key(kv, 1, 0, 0, 0), 12.0);
  EXPECT_EQ(decode_key(kv, 1, 0, 1, 0), 0.0);
}

TEST(KvCache, AScaleOfOneRequestAndHeadIsThatOfTheRequest) {
  TensorPool pool;
  KvCacheView kv = paged_view(pool);
  kv.key = kv.value = pool.values(DType::kF32, {3, 2, 1, 1}, std::vector<double>(6, 1.0));
  kv.k_scale = pool.values(DType::kF32, {2, 1}, {3, 7});
  EXPECT_EQ(decode_key(kv, 1, 0, 0, 0), 7.0);
}

TEST(KvCache, VarlenIsScaledToo) {
  TensorPool pool;
  KvCacheView kv;
  kv.kv_start_loc = pool.values(DType::kI32, {2}, {0, 2});
  kv.key = kv.value = pool.values(DType::kBF16, {2, 1, 1}, {1, 3});
  kv.v_scale = pool.values(DType::kF32, {1}, {0.25});
  EXPECT_EQ(decode_key(kv, 0, 1, 0, 0), 3.0);
  EXPECT_EQ(decode_value(kv, 0, 1, 0, 0), 0.75);
}

// The multiplication is one in double: 0.1f is not representable shorter.
TEST(KvCache, TheProductWithAScaleIsRoundedOnceInDouble) {
  TensorPool pool;
  KvCacheView kv = paged_view(pool);
  kv.key = kv.value = pool.values(DType::kF32, {3, 2, 1, 1}, std::vector<double>(6, 0.1f));
  kv.k_scale = pool.values(DType::kF32, {1}, {0.3f});
  EXPECT_EQ(decode_key(kv, 0, 0, 0, 0), static_cast<double>(0.1f) * static_cast<double>(0.3f));
  EXPECT_NE(decode_key(kv, 0, 0, 0, 0), static_cast<double>(0.1f * 0.3f));
}

class EveryFp8Code : public testing::TestWithParam<DType> {};

TEST_P(EveryFp8Code, IsItsValueTimesTheScale) {
  TensorPool pool;
  KvCacheView kv;
  kv.layout = KvLayout::kPaged;
  kv.block_table = pool.values(DType::kI32, {1, 1}, {0});
  kv.key = kv.value = pool.codes(GetParam(), {1, 1, 1, 256}, all_bytes());
  kv.k_scale = pool.values(DType::kF32, {1}, {-0.5});
  for (std::int64_t code = 0; code < 256; ++code) {
    const double stored = decode(GetParam(), static_cast<std::uint64_t>(code));
    const double key = decode_key(kv, 0, 0, 0, code);
    const double value = decode_value(kv, 0, 0, 0, code);
    EXPECT_TRUE(std::isnan(stored) ? std::isnan(key) : key == stored * -0.5) << code;
    EXPECT_TRUE(std::isnan(stored) ? std::isnan(value) : value == stored) << code;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, EveryFp8Code,
                         testing::Values(DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST(KvCache, PerTokenHeadScalesEveryCodeOfI8) {
  TensorPool pool;
  KvCacheView kv;
  kv.layout = KvLayout::kPaged;
  kv.encoding = KvEncoding::kPerTokenHead;
  kv.block_table = pool.values(DType::kI32, {1, 1}, {0});
  kv.key = kv.value = pool.codes(DType::kI8, {1, 1, 1, 256}, all_bytes());
  kv.k_scale_cache = pool.values(DType::kF32, {1, 1, 1}, {0.5});
  kv.v_scale_cache = pool.values(DType::kF32, {1, 1, 1}, {-2});
  for (int code = 0; code < 256; ++code) {
    const int stored = code < 128 ? code : code - 256;
    EXPECT_EQ(decode_key(kv, 0, 0, 0, code), 0.5 * stored);
    EXPECT_EQ(decode_value(kv, 0, 0, 0, code), -2.0 * stored);
  }
}

TEST(KvCache, PerTokenHeadScaleIsThatOfBlockSlotAndHead) {
  TensorPool pool;
  KvCacheView kv = paged_view(pool);
  kv.encoding = KvEncoding::kPerTokenHead;
  kv.key = kv.value = pool.values(DType::kF8E4M3FN, {3, 2, 2, 1}, std::vector<double>(12, 2.0));
  kv.k_scale_cache = pool.values(DType::kF32, {3, 2, 2}, counted(12));
  kv.v_scale_cache = pool.values(DType::kF32, {3, 2, 2}, counted(12, 100));
  EXPECT_EQ(decode_key(kv, 0, 1, 0, 0), 2 * 10.0);     // block 2, slot 1, head 0
  EXPECT_EQ(decode_value(kv, 0, 3, 1, 0), 2 * 103.0);  // block 0, slot 1, head 1
}

TEST(KvCache, Nvfp4DecodesBothNibblesOfEveryByte) {
  TensorPool pool;
  KvCacheView kv;
  kv.layout = KvLayout::kPaged;
  kv.encoding = KvEncoding::kNvfp4;
  kv.block_table = pool.values(DType::kI32, {1, 1}, {0});
  kv.key = kv.value = pool.codes(DType::kF4E2M1, {1, 1, 1, 256}, all_bytes());
  EXPECT_EQ(kv.head_size(), 512);
  kv.k_block_scale = kv.v_block_scale =
      pool.values(DType::kF8E4M3FN, {1, 1, 1, 32}, std::vector<double>(32, 1.5));
  kv.k_global_scale = pool.values(DType::kF32, {1}, {0.25});
  kv.v_global_scale = pool.values(DType::kF32, {1}, {-1});
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(decode_key(kv, 0, 0, 0, 2 * byte), kE2M1[byte % 16] * 0.375) << byte;
    EXPECT_EQ(decode_key(kv, 0, 0, 0, 2 * byte + 1), kE2M1[byte / 16] * 0.375) << byte;
    EXPECT_EQ(decode_value(kv, 0, 0, 0, 2 * byte + 1), kE2M1[byte / 16] * -1.5) << byte;
  }
}

TEST(KvCache, Nvfp4ScaleIsThatOfTheGroupOfSixteen) {
  TensorPool pool;
  KvCacheView kv = paged_view(pool);
  kv.encoding = KvEncoding::kNvfp4;
  const std::vector<std::uint64_t> ones(3 * 2 * 1 * 16, 0x22);  // 1, 1
  kv.key = kv.value = pool.codes(DType::kF4E2M1, {3, 2, 1, 16}, ones);
  kv.k_block_scale = kv.v_block_scale = pool.values(DType::kF8E4M3FN, {3, 2, 1, 2}, counted(12, 1));
  kv.k_global_scale = kv.v_global_scale = pool.values(DType::kF32, {1}, {1});
  EXPECT_EQ(decode_key(kv, 0, 1, 0, 15), 11.0);   // block 2, slot 1, group 0
  EXPECT_EQ(decode_key(kv, 0, 1, 0, 16), 12.0);   // group 1
  EXPECT_EQ(decode_value(kv, 0, 2, 0, 31), 2.0);  // block 0, slot 0, group 1
}

TEST(KvCache, Nvfp4NaNBlockScalePropagates) {
  TensorPool pool;
  KvCacheView kv = paged_view(pool);
  kv.encoding = KvEncoding::kNvfp4;
  kv.key = kv.value = pool.zeros(DType::kF4E2M1, {3, 2, 1, 8});
  kv.k_block_scale = kv.v_block_scale =
      pool.values(DType::kF8E4M3FN, {3, 2, 1, 1}, {1, 1, 1, 1, std::nan(""), 1});
  kv.k_global_scale = kv.v_global_scale = pool.values(DType::kF32, {1}, {1});
  EXPECT_TRUE(std::isnan(decode_key(kv, 0, 0, 0, 3)));
  EXPECT_EQ(decode_key(kv, 0, 1, 0, 3), 0.0);
}

TEST(KvCache, RowsOfMlaHaveNoHeads) {
  TensorPool pool;
  KvCacheView kv = paged_view(pool);
  kv.encoding = KvEncoding::kFp8DsMla;
  kv.key = kv.value = pool.zeros(DType::kU8, {3, 2, 1, 1});
  EXPECT_THROW(decode_key(kv, 0, 0, 0, 0), Error);
  EXPECT_THROW(decode_value(kv, 0, 0, 0, 0), Error);
}

}  // namespace
}  // namespace attn
