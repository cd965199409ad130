// What a layer asks of an attention backend: vLLM's AttentionSelectorConfig.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "attn/cache_dtype.h"
#include "attn/dtype.h"

namespace attn {

enum class AttentionType : std::uint8_t { kDecoder, kEncoder, kEncoderOnly, kEncoderDecoder };
inline constexpr int kNumAttentionTypes = 4;

std::string_view name(AttentionType type);  // "encoder_only"
std::optional<AttentionType> attention_type_from_name(std::string_view name);

// A type as a caller passes it: the enum member or its plain string. They are equal; only printing
// differs.
struct AttentionTypeArgument {
  AttentionType type = AttentionType::kDecoder;
  bool plain = false;

  friend constexpr std::strong_ordering operator<=>(const AttentionTypeArgument& a,
                                                    const AttentionTypeArgument& b) {
    return a.type <=> b.type;
  }
  friend constexpr bool operator==(const AttentionTypeArgument& a, const AttentionTypeArgument& b) {
    return a.type == b.type;
  }
};

// "AttentionType.ENCODER_ONLY", or "encoder_only" when plain.
std::string to_string(AttentionTypeArgument argument);

// "float16", "bfloat16", "float32"; throws Error for another type.
std::string_view model_dtype_name(DType dtype);
std::optional<DType> model_dtype_from_name(std::string_view name);

// Fields in vLLM's order. Compared by value.
struct AttentionSelectorConfig {
  int head_size = 0;
  DType dtype = DType::kBF16;  // kF16, kBF16 or kF32
  std::optional<CacheDType> kv_cache_dtype;
  std::optional<int> block_size;
  bool use_mla = false;
  bool has_sink = false;
  bool use_sparse = false;
  bool use_mm_prefix = false;
  bool use_per_head_quant_scales = false;
  AttentionTypeArgument attn_type;
  bool has_sliding_window = false;
  bool use_non_causal = false;
  bool use_batch_invariant = false;
  bool use_kv_connector = false;
  bool use_pcp = false;
  bool use_adaptive_verification = false;
  bool use_dcp = false;
  bool use_rswa = false;

  auto operator<=>(const AttentionSelectorConfig&) const = default;
};

// vLLM's repr, on one line. It prints use_adaptive_verification before use_pcp.
std::string to_string(const AttentionSelectorConfig& config);

// Reads such a text back. Throws Error when it is not one.
AttentionSelectorConfig selector_config_from_repr(std::string_view text);

}  // namespace attn
