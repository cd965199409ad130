#include "attn/view.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/error_text.h"

namespace attn {
namespace {

static_assert(std::is_trivially_copyable_v<TensorView> && std::is_standard_layout_v<TensorView>);
static_assert(std::is_trivially_copyable_v<MutableTensorView> &&
              std::is_standard_layout_v<MutableTensorView>);
static_assert(std::is_convertible_v<MutableTensorView, TensorView>);
static_assert(!std::is_convertible_v<TensorView, MutableTensorView>);
static_assert(sizeof(TensorView{}.shape[0]) == 8 && sizeof(TensorView{}.stride_bytes[0]) == 8);

class View : public testing::Test {
 protected:
  View() { std::iota(values_.begin(), values_.end(), 0.0f); }

  std::array<float, 24> values_;
  const TensorView view_ = contiguous(values_.data(), DType::kF32, {2, 3, 4});
};

TEST(AbsentView, IsWhatDefaultConstructionGives) {
  EXPECT_FALSE(TensorView{}.present());
  EXPECT_EQ(to_string(TensorView{}), "absent");
}

TEST_F(View, ContiguousIsDenseInCOrder) {
  EXPECT_EQ(view_.rank, 3);
  EXPECT_EQ(view_.stride_bytes[0], 48);
  EXPECT_EQ(view_.stride_bytes[1], 16);
  EXPECT_EQ(view_.stride_bytes[2], 4);
  EXPECT_EQ(view_.num_units(), 24);
  EXPECT_EQ(view_.space, MemorySpace::kHost);
}

TEST_F(View, AtIsTheAddressOfItsIndices) {
  EXPECT_EQ(static_cast<const void*>(view_.at(0, 0, 0)), &values_[0]);
  EXPECT_EQ(static_cast<const void*>(view_.at(1, 2, 3)), &values_[23]);
  EXPECT_EQ(static_cast<const void*>(view_.at(1, 2)), &values_[20]) << "missing indices are 0";
  EXPECT_EQ(value_at(view_, 1, 0, 2), 14.0);
}

TEST_F(View, ContiguousCountsBytesOfPackedTypes) {
  const TensorView packed = contiguous(values_.data(), DType::kF4E2M1, {3, 8});
  EXPECT_EQ(packed.stride_bytes[0], 8);
  EXPECT_EQ(packed.stride_bytes[1], 1);
}

TEST_F(View, ContiguousTakesOneToSixAxes) {
  EXPECT_EQ(contiguous(values_.data(), DType::kF32, {1, 2, 1, 3, 1, 4}).rank, 6);
  EXPECT_EQ(error_of([&] { contiguous(values_.data(), DType::kF32, {}); }),
            "a tensor has 1 to 6 axes, not 0");
  EXPECT_EQ(error_of([&] {
              contiguous(values_.data(), DType::kF32, {1, 1, 1, 1, 1, 1, 1});
            }),
            "a tensor has 1 to 6 axes, not 7");
}

TEST_F(View, MutableViewConvertsWithEveryField) {
  MutableTensorView writable = contiguous(values_.data(), DType::kF16, {2, 3, 4, 1, 1, 2});
  writable.space = MemorySpace::kDevice;
  const TensorView view = writable;
  EXPECT_EQ(view.data, writable.data);
  EXPECT_EQ(view.dtype, DType::kF16);
  EXPECT_EQ(view.space, MemorySpace::kDevice);
  EXPECT_EQ(view.rank, 6);
  EXPECT_EQ(view.shape[5], 2);
  EXPECT_EQ(view.stride_bytes[0], 48);
}

TEST_F(View, SwapAxesKeepsTheElements) {
  const TensorView swapped = swap_axes(view_, 0, 2);
  EXPECT_EQ(to_string(swapped), "f32[4,3,2]");
  for (int a = 0; a < 2; ++a) {
    for (int b = 0; b < 3; ++b) {
      for (int c = 0; c < 4; ++c) EXPECT_EQ(swapped.at(c, b, a), view_.at(a, b, c));
    }
  }
}

TEST_F(View, SliceBeginsAtFirst) {
  const TensorView part = slice(view_, 1, 1, 2);
  EXPECT_EQ(to_string(part), "f32[2,2,4]");
  EXPECT_EQ(value_at(part, 0, 0, 0), 4.0);
  EXPECT_EQ(value_at(part, 1, 1, 3), 23.0);
}

TEST_F(View, SliceMayBeEmptyOrWhole) {
  EXPECT_EQ(slice(view_, 2, 4, 0).num_units(), 0);
  EXPECT_EQ(to_string(slice(view_, 0, 0, 2)), to_string(view_));
}

TEST_F(View, SliceOfNoMemoryHasNone) {
  TensorView nothing = view_;
  nothing.data = nullptr;
  nothing.shape[2] = 0;
  EXPECT_EQ(slice(nothing, 0, 1, 1).data, nullptr);
}

TEST_F(View, SliceBeyondTheAxisIsAnError) {
  EXPECT_EQ(error_of([&] { slice(view_, 1, 2, 2); }),
            "slice of 2 from 2 on, of axis 1 of f32[2,3,4]");
  EXPECT_EQ(error_of([&] { slice(view_, 1, -1, 2); }),
            "slice of 2 from -1 on, of axis 1 of f32[2,3,4]");
  EXPECT_EQ(error_of([&] { slice(view_, 0, 1, -1); }),
            "slice of -1 from 1 on, of axis 0 of f32[2,3,4]");
}

TEST_F(View, SliceAtTheEndOfInt64IsAnError) {
  EXPECT_NE(error_of([&] { slice(view_, 0, 1, INT64_MAX); }), "");
  EXPECT_NE(error_of([&] { slice(view_, 0, INT64_MAX, 1); }), "");
}

TEST_F(View, AnAxisItDoesNotHaveIsAnError) {
  EXPECT_EQ(error_of([&] { slice(view_, 3, 0, 0); }), "axis 3 of f32[2,3,4]");
  EXPECT_EQ(error_of([&] { slice(view_, -1, 0, 0); }), "axis -1 of f32[2,3,4]");
  EXPECT_EQ(error_of([&] { swap_axes(view_, 0, 3); }), "axis 3 of f32[2,3,4]");
  EXPECT_EQ(error_of([&] { swap_axes(view_, -1, 0); }), "axis -1 of f32[2,3,4]");
}

TEST(ViewValues, BroadcastAxisHasStrideZero) {
  const double one = 2.5;
  TensorView view = contiguous(&one, DType::kF64, {1, 1});
  view.shape[1] = 1000;
  view.stride_bytes[1] = 0;
  EXPECT_EQ(value_at(view, 0, 999), 2.5);
}

TEST(ViewValues, IntAtReadsTheIndexTypes) {
  const std::int32_t i32[] = {7, -1, INT32_MIN};
  const std::int64_t i64[] = {7, -1, INT64_MAX};
  const std::uint8_t flags[] = {0, 1, 2};
  EXPECT_EQ(int_at(contiguous(i32, DType::kI32, {3}), 1), -1);
  EXPECT_EQ(int_at(contiguous(i32, DType::kI32, {3}), 2), INT32_MIN);
  EXPECT_EQ(int_at(contiguous(i64, DType::kI64, {3}), 1), -1);
  EXPECT_EQ(int_at(contiguous(i64, DType::kI64, {3}), 2), INT64_MAX);
  EXPECT_EQ(int_at(contiguous(flags, DType::kBool, {3}), 0), 0);
  EXPECT_EQ(int_at(contiguous(flags, DType::kBool, {3}), 2), 1);
}

// Two block ids on both sides of the place where block * stride leaves 31 bits. Nothing is read.
TEST(ViewOffsets, AreComputedIn64Bits) {
  const std::uint8_t first = 0;
  TensorView cache = contiguous(&first, DType::kU8, {7769, 1});
  cache.stride_bytes[0] = 480 * 576;
  const auto offset = [&](std::int32_t block) {
    return reinterpret_cast<std::uintptr_t>(cache.at(block, 0)) -
           reinterpret_cast<std::uintptr_t>(cache.data);
  };
  EXPECT_EQ(offset(7767), 2147420160u);
  EXPECT_EQ(offset(7768), 2147696640u);
}

}  // namespace
}  // namespace attn
