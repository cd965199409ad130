// Rows of quantised latent (MLA) caches that no operation takes yet: what their bytes mean.
//
// Sources: FlashMLA's tests (quant.py) for the two of DeepSeek-V4, vLLM's cache writers for
// nvfp4_ds_mla. Both are known from code alone, so layouts may move. One element is its code times
// its scale, exactly; kernels round the product to bf16 before they multiply. A scale 2^(e - 127)
// with e = 0xFF is NaN, and so is every element under it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace attn {

// DeepSeek-V4, 584 bytes a token: 448 f8_e4m3fn ‖ 64 bf16 (rope, not quantised), and apart from
// them 7 scales f8_e8m0, one for each 64 of the 448, and a byte of padding. In a page all data come
// first, then all scales; a page is padded to a multiple of 576 bytes.
struct V4MlaPage {
  static constexpr std::int64_t kNope = 448;
  static constexpr std::int64_t kRope = 64;
  static constexpr std::int64_t kGroup = 64;
  static constexpr std::int64_t kDataBytes = kNope + 2 * kRope;
  static constexpr std::int64_t kScaleBytes = kNope / kGroup + 1;

  std::int64_t block_size = 0;  // tokens in a page, >= 1

  // Bytes from the start of the page.
  std::int64_t data_at(std::int64_t slot) const { return slot * kDataBytes; }
  std::int64_t scales_at(std::int64_t slot) const {
    return block_size * kDataBytes + slot * kScaleBytes;
  }
  std::int64_t bytes() const;
};

// The 512 elements of a slot. Throws Error when the page is smaller than page.bytes() or has no
// such slot.
void decode_v4_mla_row(const V4MlaPage& page, std::span<const std::byte> memory, std::int64_t slot,
                       std::span<double, 512> row);

// DeepSeek-V4.1, 528 bytes a token: 512 f8_e4m3fn, 16 scales f8_e8m0, one for each 32. Where the
// scales lie in a page is written down nowhere, so both parts are given.
void decode_v41_mla_row(std::span<const std::byte, 512> data, std::span<const std::byte, 16> scales,
                        std::span<double, 512> row);

// nvfp4_ds_mla, 352 bytes: 512 f4_e2m1 (the low nibble is the even element) ‖ 64 f8_e4m3fn (rope,
// without a scale) ‖ 32 scales f8_e4m3fn, one for each 16 of the 512, in another order.
struct Nvfp4MlaRow {
  static constexpr std::int64_t kLatent = 512;
  static constexpr std::int64_t kRope = 64;
  static constexpr std::int64_t kGroup = 16;
  static constexpr std::int64_t kGroups = kLatent / kGroup;
  static constexpr std::int64_t kRopeAt = kLatent / 2;
  static constexpr std::int64_t kScalesAt = kRopeAt + kRope;
  static constexpr std::int64_t kBytes = kScalesAt + kGroups;

  // Which of the 32 bytes holds the scale of a group.
  static constexpr std::int64_t scale_place(std::int64_t group) {
    return 8 * (group & 3) + (group >> 2);
  }
};

// Latent ‖ rope.
void decode_nvfp4_mla_row(std::span<const std::byte, Nvfp4MlaRow::kBytes> bytes,
                          std::span<double, 576> row);

}  // namespace attn
