#include "attn/cache_dtype.h"

#include <algorithm>
#include <array>
#include <string>

namespace attn {
namespace {

constexpr std::array<std::string_view, kNumCacheDTypes> kCacheDTypeNames = {"auto",
                                                                            "float16",
                                                                            "bfloat16",
                                                                            "fp8",
                                                                            "fp8_e4m3",
                                                                            "fp8_e5m2",
                                                                            "fp8_inc",
                                                                            "fp8_ds_mla",
                                                                            "nvfp4_ds_mla",
                                                                            "turboquant_k8v4",
                                                                            "turboquant_4bit_nc",
                                                                            "turboquant_k3v4_nc",
                                                                            "turboquant_3bit_nc",
                                                                            "octave_k3v4",
                                                                            "octave_k3v3",
                                                                            "octave_k3v3_compact",
                                                                            "ultraquant_4bit",
                                                                            "int4_per_token_head",
                                                                            "int8_per_token_head",
                                                                            "fp8_per_token_head",
                                                                            "nvfp4",
                                                                            "nvfp4_4over6"};

constexpr std::array<std::string_view, kNumKvQuantModes> kModeNames = {"NONE",
                                                                       "FP8_PER_TENSOR",
                                                                       "INT8_PER_TOKEN_HEAD",
                                                                       "FP8_PER_TOKEN_HEAD",
                                                                       "INT4_PER_TOKEN_HEAD",
                                                                       "NVFP4",
                                                                       "TURBOQUANT_K8V4",
                                                                       "TURBOQUANT_4BIT_NC",
                                                                       "TURBOQUANT_K3V4_NC",
                                                                       "TURBOQUANT_3BIT_NC",
                                                                       "NVFP4_DS_MLA",
                                                                       "ULTRAQUANT_4BIT",
                                                                       "OCTAVE_K3V4",
                                                                       "OCTAVE_K3V3",
                                                                       "OCTAVE_K3V3_COMPACT"};

template <class Enum, std::size_t N>
std::optional<Enum> member(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

}  // namespace

std::string_view name(CacheDType dtype) {
  return kCacheDTypeNames[static_cast<std::size_t>(dtype)];
}

std::optional<CacheDType> cache_dtype_from_name(std::string_view name) {
  return member<CacheDType>(kCacheDTypeNames, name);
}

std::string_view name(KvQuantMode mode) { return kModeNames[static_cast<std::size_t>(mode)]; }

std::optional<KvQuantMode> kv_quant_mode_member(std::string_view name) {
  if (name == "CUSTOM") return KvQuantMode::kOctaveK3V4;
  return member<KvQuantMode>(kModeNames, name);
}

KvQuantMode kv_quant_mode(std::string_view dtype) {
  if (dtype == "int4_per_token_head") return KvQuantMode::kInt4PerTokenHead;
  if (dtype == "int8_per_token_head") return KvQuantMode::kInt8PerTokenHead;
  if (dtype == "fp8_per_token_head") return KvQuantMode::kFp8PerTokenHead;
  if (dtype == "nvfp4_ds_mla") return KvQuantMode::kNvfp4DsMla;
  if (dtype.starts_with("nvfp4")) return KvQuantMode::kNvfp4;
  if (dtype.starts_with("turboquant_") || dtype.starts_with("octave_")) {
    return member<KvQuantMode>(kModeNames, upper_case(dtype)).value_or(KvQuantMode::kNone);
  }
  if (dtype == "ultraquant_4bit") return KvQuantMode::kUltraquant4Bit;
  if (dtype.starts_with("fp8")) return KvQuantMode::kFp8PerTensor;
  return KvQuantMode::kNone;
}

}  // namespace attn
