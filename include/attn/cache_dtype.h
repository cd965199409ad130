// vLLM's names of KV cache dtypes (CacheDType) and what their quantisation mode is.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace attn {

// In vLLM's order.
enum class CacheDType : std::uint8_t {
  kAuto,
  kFloat16,
  kBFloat16,
  kFp8,
  kFp8E4M3,
  kFp8E5M2,
  kFp8Inc,
  kFp8DsMla,
  kNvfp4DsMla,
  kTurboquantK8V4,
  kTurboquant4BitNc,
  kTurboquantK3V4Nc,
  kTurboquant3BitNc,
  kOctaveK3V4,
  kOctaveK3V3,
  kOctaveK3V3Compact,
  kUltraquant4Bit,
  kInt4PerTokenHead,
  kInt8PerTokenHead,
  kFp8PerTokenHead,
  kNvfp4,
  kNvfp4FourOverSix,
};
inline constexpr int kNumCacheDTypes = 22;

std::string_view name(CacheDType dtype);
std::optional<CacheDType> cache_dtype_from_name(std::string_view name);

enum class KvQuantMode : std::uint8_t {
  kNone,
  kFp8PerTensor,
  kInt8PerTokenHead,
  kFp8PerTokenHead,
  kInt4PerTokenHead,
  kNvfp4,
  kTurboquantK8V4,
  kTurboquant4BitNc,
  kTurboquantK3V4Nc,
  kTurboquant3BitNc,
  kNvfp4DsMla,
  kUltraquant4Bit,
  kOctaveK3V4,
  kOctaveK3V3,
  kOctaveK3V3Compact,
};
inline constexpr int kNumKvQuantModes = 15;

std::string_view name(KvQuantMode mode);                                 // "FP8_PER_TENSOR"
std::optional<KvQuantMode> kv_quant_mode_member(std::string_view name);  // also the alias CUSTOM

// The mode of any dtype string, also of one that is no CacheDType: "fp8_anything" counts as fp8.
KvQuantMode kv_quant_mode(std::string_view dtype);

// kv_quant_mode(name(dtype)) != kNone: everything behind the 16-bit types.
constexpr bool is_quantised(CacheDType dtype) { return dtype > CacheDType::kBFloat16; }
constexpr bool is_quantised(std::optional<CacheDType> dtype) {
  return dtype && is_quantised(*dtype);
}
// The name starts with "nvfp4", "turboquant_".
constexpr bool is_nvfp4_family(CacheDType dtype) {
  return dtype == CacheDType::kNvfp4 || dtype == CacheDType::kNvfp4FourOverSix ||
         dtype == CacheDType::kNvfp4DsMla;
}
constexpr bool is_turboquant(CacheDType dtype) {
  return dtype >= CacheDType::kTurboquantK8V4 && dtype <= CacheDType::kTurboquant3BitNc;
}

// A set of cache dtypes and of "not given".
class CacheDTypeSet {
 public:
  constexpr CacheDTypeSet() = default;
  constexpr CacheDTypeSet(std::initializer_list<CacheDType> dtypes) {
    for (const CacheDType dtype : dtypes) bits_ |= bit(dtype);
  }

  // Every dtype, and "not given".
  static constexpr CacheDTypeSet all() {
    return CacheDTypeSet((std::uint32_t{1} << (kNumCacheDTypes + 1)) - 1);
  }

  constexpr CacheDTypeSet with(std::optional<CacheDType> dtype) const {
    return CacheDTypeSet(bits_ | bit(dtype));
  }
  constexpr CacheDTypeSet without(std::optional<CacheDType> dtype) const {
    return CacheDTypeSet(bits_ & ~bit(dtype));
  }
  constexpr CacheDTypeSet common_with(CacheDTypeSet other) const {
    return CacheDTypeSet(bits_ & other.bits_);
  }
  constexpr bool contains(std::optional<CacheDType> dtype) const {
    return (bits_ & bit(dtype)) != 0;
  }
  constexpr bool operator==(const CacheDTypeSet&) const = default;

  // A bit for each dtype, in the order of the enum, then one for "not given".
  constexpr std::uint32_t bits() const { return bits_; }

 private:
  constexpr explicit CacheDTypeSet(std::uint32_t bits) : bits_(bits) {}
  static constexpr std::uint32_t bit(std::optional<CacheDType> dtype) {
    return std::uint32_t{1} << (dtype ? static_cast<int>(*dtype) : kNumCacheDTypes);
  }

  std::uint32_t bits_ = 0;
};

}  // namespace attn
