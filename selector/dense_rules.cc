// supports_combination of the backends outside MLA.
#include <optional>

#include "selector/combination_rules.h"
#include "selector/kernel_facts.h"

namespace attn {
namespace {

FlashAttnUse flash_attn_use(const AttentionSelectorConfig& config) {
  return {.head_size = config.head_size,
          .head_size_v = std::nullopt,
          .has_sinks = config.has_sink,
          .requires_alibi = false,
          .requires_softcap = false,
          .block_size = config.block_size,
          .hd256 = true};
}

bool kv_is_fp8(const AttentionSelectorConfig& config) {
  return config.kv_cache_dtype == CacheDType::kFp8 || config.kv_cache_dtype == CacheDType::kFp8E4M3;
}

bool is_gfx12_rdna(const SelectorFacts& facts) {
  return facts.platform == Platform::kRocm && facts.environment.gcn_arch.starts_with("gfx12") &&
         cdna_version(facts) == 0;
}

}  // namespace

Broken flash_attn_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config) {
  if (config.has_sink && facts.capability && !facts.at_least(9, 0)) return Broken::kSinkBelowSm90;
  const bool quantised = is_quantised(config.kv_cache_dtype);
  if (config.use_mm_prefix && quantised && facts.is(9, 0)) return Broken::kSm90Fp8MmPrefix;
  if (quantised) {
    FlashAttnUse use = flash_attn_use(config);
    use.head_size_v = config.head_size;
    if (!flash_attn_reads_kv(facts, *config.kv_cache_dtype, use)) {
      return Broken::kFp8NeedsNewFlashAttn;
    }
  }
  if (config.use_mm_prefix && flash_attn_version(facts, flash_attn_use(config)) != 4) {
    return Broken::kMmPrefixNeedsFlashAttn4;
  }
  return Broken::kNothing;
}

Broken step5_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config) {
  AttentionSelectorConfig with_auto = config;
  with_auto.kv_cache_dtype = CacheDType::kAuto;
  return flash_attn_rules(facts, with_auto);
}

Broken causal_flash_attn_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config) {
  const Broken own = flash_attn_rules(facts, config);
  if (own != Broken::kNothing || facts.platform == Platform::kXpu) return own;
  const std::optional<int> version = flash_attn_version(facts, flash_attn_use(config));
  return version == 3 || version == 4 ? Broken::kNothing : Broken::kCausalRoute;
}

Broken flashinfer_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config) {
  const int major = facts.major();
  const bool nvfp4 = config.kv_cache_dtype && is_nvfp4_family(*config.kv_cache_dtype);
  if (!nvfp4 || (major != 8 && major != 9 && major != 12)) return Broken::kNothing;
  if (config.head_size == 64) return Broken::kNvfp4Head64;
  return config.has_sink ? Broken::kNvfp4Sink : Broken::kNothing;
}

Broken b12x_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config) {
  if (config.dtype != DType::kBF16) return Broken::kB12xDType;
  if (config.kv_cache_dtype == CacheDType::kFloat16) return Broken::kB12xFloat16;
  if (is_quantised(config.kv_cache_dtype) && !kv_is_fp8(config)) return Broken::kB12xQuantised;
  switch (facts.environment.b12x) {
    case B12xState::kMissing:
      return Broken::kB12xMissing;
    case B12xState::kUnsupported:
      return Broken::kB12xDevice;
    case B12xState::kSupported:
      break;
  }
  return Broken::kNothing;
}

Broken segmented_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config) {
  if (!is_gfx12_rdna(facts) && rdna_version(facts) != 3) return Broken::kSegmentedDevice;
  return kv_is_fp8(config) && !is_gfx12_rdna(facts) ? Broken::kSegmentedFp8 : Broken::kNothing;
}

Broken aiter_mla_rules(const SelectorFacts&, const AttentionSelectorConfig& config) {
  const auto kv = config.kv_cache_dtype;
  const bool kv_is_fp16 = !kv || kv == CacheDType::kAuto || kv == CacheDType::kFloat16;
  return config.use_non_causal && config.dtype == DType::kF16 && kv_is_fp16
             ? Broken::kAiterNonCausalFp16
             : Broken::kNothing;
}

}  // namespace attn
