// Rows of doubles: every code of every type, contiguous and strided, at odd addresses.
#include "judge/row_values.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace attn {
namespace {

void expect_same(double value, double definition, DType type, std::uint64_t code) {
  EXPECT_TRUE(std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(definition) ||
              (value != value && definition != definition))
      << name(type) << ' ' << code << ": " << value << ", " << definition;
}

TEST(RowValues, AreTheDecodedCodes) {
  for (const DType type : {DType::kF16, DType::kBF16, DType::kF8E4M3FN, DType::kF8E5M2}) {
    const std::int64_t count = std::int64_t{1} << bits(type);
    for (const std::int64_t gap : {0, 3}) {
      const std::int64_t stride = unit_bytes(type) + gap;
      std::vector<std::byte> memory(static_cast<std::size_t>(count * stride + 1));
      for (std::int64_t code = 0; code < count; ++code) {
        store_code(type, static_cast<std::uint64_t>(code), memory.data() + 1 + code * stride);
      }
      std::vector<double> values(static_cast<std::size_t>(count));
      judge::read_values(memory.data() + 1, type, stride, count, values.data());
      for (std::int64_t code = 0; code < count; ++code) {
        const auto bits_of_it = static_cast<std::uint64_t>(code);
        expect_same(values[static_cast<std::size_t>(code)], decode(type, bits_of_it), type,
                    bits_of_it);
      }
    }
  }
}

TEST(RowValues, WideTypesOfEveryLengthAndPart) {
  for (const DType type : {DType::kF32, DType::kF64}) {
    for (std::int64_t length = 0; length < 20; ++length) {
      std::vector<std::byte> memory(static_cast<std::size_t>(20 * unit_bytes(type)));
      for (std::int64_t i = 0; i < 20; ++i) {
        store_code(type, encode(type, 0.1 * static_cast<double>(i - 3), Overflow::kInfinity),
                   memory.data() + i * unit_bytes(type));
      }
      std::vector<double> values(20, -1.0);
      const TensorView view = contiguous(memory.data(), type, {1, 20});
      judge::read_row(view, 20 - length, length, values.data(), 0);
      for (std::int64_t i = 0; i < length; ++i) {
        EXPECT_EQ(values[static_cast<std::size_t>(i)], value_at(view, 0, 20 - length + i));
      }
      if (length < 20) {
        EXPECT_EQ(values[static_cast<std::size_t>(length)], -1.0);
      }
    }
  }
}

}  // namespace
}  // namespace attn
