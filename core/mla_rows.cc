#include "attn/mla_rows.h"

#include <fmt/core.h>

#include "attn/dtype.h"
#include "attn/error.h"

namespace attn {
namespace {

// f8_e4m3fn codes, each `group` of them under one f8_e8m0 scale.
void decode_scaled(const std::byte* data, const std::byte* scales, std::int64_t count,
                   std::int64_t group, double* row) {
  for (std::int64_t d = 0; d < count; ++d) {
    const double scale = decode(DType::kF8E8M0, load_code(DType::kF8E8M0, scales + d / group));
    row[d] = decode(DType::kF8E4M3FN, load_code(DType::kF8E4M3FN, data + d)) * scale;
  }
}

}  // namespace

std::int64_t V4MlaPage::bytes() const {
  const std::int64_t used = block_size * (kDataBytes + kScaleBytes);
  return (used + kDataBytes - 1) / kDataBytes * kDataBytes;
}

void decode_v4_mla_row(const V4MlaPage& page, std::span<const std::byte> memory, std::int64_t slot,
                       std::span<double, 512> row) {
  if (slot < 0 || slot >= page.block_size) {
    throw Error(fmt::format("slot {} is outside [0, {})", slot, page.block_size));
  }
  if (static_cast<std::int64_t>(memory.size()) < page.bytes()) {
    throw Error(fmt::format("a page of {} slots has {} bytes, not {}", page.block_size,
                            page.bytes(), memory.size()));
  }
  const std::byte* data = memory.data() + page.data_at(slot);
  decode_scaled(data, memory.data() + page.scales_at(slot), V4MlaPage::kNope, V4MlaPage::kGroup,
                row.data());
  const std::byte* rope = data + V4MlaPage::kNope;
  for (std::int64_t d = 0; d < V4MlaPage::kRope; ++d) {
    row[static_cast<std::size_t>(V4MlaPage::kNope + d)] =
        decode(DType::kBF16, load_code(DType::kBF16, rope + 2 * d));
  }
}

void decode_v41_mla_row(std::span<const std::byte, 512> data, std::span<const std::byte, 16> scales,
                        std::span<double, 512> row) {
  decode_scaled(data.data(), scales.data(), 512, 32, row.data());
}

void decode_nvfp4_mla_row(std::span<const std::byte, Nvfp4MlaRow::kBytes> bytes,
                          std::span<double, 576> row) {
  using Row = Nvfp4MlaRow;
  const auto e4m3 = [&](std::int64_t at) {
    return decode(DType::kF8E4M3FN, load_code(DType::kF8E4M3FN, bytes.data() + at));
  };
  for (std::int64_t d = 0; d < Row::kLatent; ++d) {
    const std::uint64_t pair = load_code(DType::kF4E2M1, bytes.data() + d / 2);
    const double code = decode(DType::kF4E2M1, d % 2 == 0 ? pair : pair >> 4);
    row[static_cast<std::size_t>(d)] =
        code * e4m3(Row::kScalesAt + Row::scale_place(d / Row::kGroup));
  }
  for (std::int64_t d = 0; d < Row::kRope; ++d) {
    row[static_cast<std::size_t>(Row::kLatent + d)] = e4m3(Row::kRopeAt + d);
  }
}

}  // namespace attn
