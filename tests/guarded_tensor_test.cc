// Writes beside a tensor: which byte of which zone.
#include "attn/guarded_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "attn/error.h"

namespace attn {
namespace {

std::byte* at(GuardedTensor& tensor, std::int64_t offset) {
  return static_cast<std::byte*>(tensor.view().data) + offset;
}

void spoil(GuardedTensor& tensor, std::int64_t offset, int count = 1) {
  for (int i = 0; i < count; ++i) *at(tensor, offset + i) ^= std::byte{0x10};
}

TEST(GuardedTensors, WritingEveryElementIsNoDamage) {
  GuardedTensor tensor("out", DType::kF32, {2, 3, 5});
  const MutableTensorView view = tensor.view();
  EXPECT_EQ(view.stride_bytes[2], 4);
  EXPECT_EQ(view.stride_bytes[1], 20);
  EXPECT_EQ(view.stride_bytes[0], 60);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data) % 64, 0u);
  for (int a = 0; a < 2; ++a) {
    for (int b = 0; b < 3; ++b) {
      for (int c = 0; c < 5; ++c) store_code(DType::kF32, 0, view.at(a, b, c));
    }
  }
  EXPECT_EQ(tensor.damage(), "");
}

TEST(GuardedTensors, BytesBeforeAndBehindAreToldApart) {
  {
    GuardedTensor tensor("out", DType::kF32, {2, 3});
    spoil(tensor, -8, 4);
    EXPECT_EQ(tensor.damage(), "4 bytes before out were written, the first at -8");
  }
  {
    GuardedTensor tensor("lse", DType::kF32, {2, 3});
    spoil(tensor, 24);
    EXPECT_EQ(tensor.damage(), "1 byte behind lse was written, at 24");
  }
  {
    GuardedTensor tensor("out", DType::kBF16, {4, 3});
    spoil(tensor, -1);
    spoil(tensor, 30, 2);
    EXPECT_EQ(tensor.damage(),
              "1 byte before out was written, at -1; 2 bytes behind out were written, the first at "
              "30");
  }
}

TEST(GuardedTensors, EveryGuardByteIsWatched) {
  for (std::int64_t offset = -64; offset < 12 + 64; ++offset) {
    GuardedTensor tensor("out", DType::kF32, {3});
    const bool payload = offset >= 0 && offset < 12;
    spoil(tensor, offset);
    EXPECT_EQ(tensor.damage().empty(), payload) << offset;
  }
}

TEST(GuardedTensors, ZerosOnesAndNeighbouringBytesDoNotPassForTheGuard) {
  for (const int byte : {0x00, 0xFF, 0xA5}) {
    GuardedTensor tensor("out", DType::kF32, {3});
    std::memset(at(tensor, 12), byte, 64);
    EXPECT_NE(tensor.damage(), "");
  }
  for (const int shift : {1, 2, 4, 8, 16, 32, 64}) {
    GuardedTensor tensor("out", DType::kF32, {3});
    std::memmove(at(tensor, 12 + shift), at(tensor, 12), 64);
    EXPECT_NE(tensor.damage(), "") << shift;
  }
}

TEST(GuardedTensors, StartAsPoison) {
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3FN,
                            DType::kF8E5M2, DType::kF8E8M0}) {
    const GuardedTensor tensor("out", dtype, {2, 3});
    for (int a = 0; a < 2; ++a) {
      for (int b = 0; b < 3; ++b) EXPECT_TRUE(std::isnan(value_at(tensor.view(), a, b)));
    }
    EXPECT_EQ(tensor.damage(), "");
  }
  for (const DType dtype : {DType::kI8, DType::kU8, DType::kF4E2M1}) {
    const GuardedTensor tensor("cache", dtype, {5});
    EXPECT_EQ(load_code(dtype, tensor.view().at(4)), 0xA5u);
  }
}

TEST(GuardedTensors, MayBeEmptyAndMoved) {
  GuardedTensor empty("out", DType::kF32, {0, 4});
  EXPECT_EQ(empty.damage(), "");
  spoil(empty, 0);
  EXPECT_NE(empty.damage(), "");
  GuardedTensor tensor("out", DType::kF32, {2});
  const void* data = tensor.view().data;
  GuardedTensor moved = std::move(tensor);
  EXPECT_EQ(moved.view().data, data);
  EXPECT_EQ(moved.damage(), "");
}

TEST(GuardedTensors, NeedAShape) {
  EXPECT_THROW(GuardedTensor("out", DType::kF32, {}), Error);
  EXPECT_THROW(GuardedTensor("out", DType::kF32, {2, -1}), Error);
}

}  // namespace
}  // namespace attn
