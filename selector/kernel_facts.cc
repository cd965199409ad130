#include "selector/kernel_facts.h"

namespace attn {
namespace {

int default_version(const SelectorFacts& facts) {
  if (facts.major() == 9 && flash_attn_supported(facts, 3)) return 3;
  return facts.major() == 10 && flash_attn_supported(facts, 4) ? 4 : 2;
}

// Version 4 instead of 3 on Hopper.
bool hopper_needs_4(const SelectorFacts& facts, const FlashAttnUse& use) {
  const bool different_heads =
      use.head_size && use.head_size_v && *use.head_size != *use.head_size_v;
  const bool is_diffusion = facts.environment.model && facts.environment.model->is_diffusion;
  return (use.head_size && *use.head_size > 256) || (use.has_sinks && different_heads) ||
         is_diffusion;
}

// What FA4's kernel for head size 256 cannot do.
bool hd256_refuses(const SelectorFacts& facts, const FlashAttnUse& use) {
  const SelectorEnvironment& e = facts.environment;
  const bool model_refuses =
      e.model && (e.model->hf.attn_logit_softcapping.value_or(0.0) != 0.0 ||
                  e.model->is_mm_prefix_lm || e.model->rswa_window.has_value());
  return !use.hd256 || use.has_sinks || use.requires_softcap || model_refuses ||
         is_quantised(e.cache_dtype) || (use.block_size && *use.block_size % 128 != 0) ||
         e.dcp_size > 1;
}

// Head sizes above 128 that version 4 has kernels for.
bool wide_head_has_kernel(const FlashAttnUse& use) {
  if (use.head_size == 256) return !use.head_size_v || use.head_size_v == 256;
  return use.head_size == 192 && use.head_size_v == 128;
}

}  // namespace

bool flash_attn_supported(const SelectorFacts& facts, int version) {
  const SelectorEnvironment& e = facts.environment;
  if (facts.platform != Platform::kCuda) return false;
  switch (version) {
    case 2:
      return e.fa2_built && facts.at_least(8, 0);
    case 3:
      return e.fa3_built && facts.major() == 9;
    case 4:
      return e.fa4_built && facts.major() >= 9 && facts.major() <= 11;
    default:
      return false;
  }
}

bool flash_attn_hd256_applies(const SelectorFacts& facts, std::optional<int> head_size,
                              std::optional<int> head_size_v) {
  return head_size == 256 && (!head_size_v || head_size_v == 256) &&
         (facts.major() == 10 || facts.major() == 11);
}

std::optional<int> flash_attn_version(const SelectorFacts& facts, const FlashAttnUse& use) {
  if (facts.platform == Platform::kXpu) return 2;
  if (facts.platform != Platform::kCuda) return std::nullopt;
  const SelectorEnvironment& e = facts.environment;
  int version = e.flash_attn_version.value_or(default_version(facts));
  if (facts.major() >= 10 && version == 3) version = flash_attn_supported(facts, 4) ? 4 : 2;
  if (use.requires_alibi && version >= 3) version = 2;
  if (version == 3 && facts.major() == 9 && flash_attn_supported(facts, 4) &&
      hopper_needs_4(facts, use)) {
    version = 4;
  }
  if (e.batch_invariant && version == 4) version = 2;
  if (version == 4 && flash_attn_hd256_applies(facts, use.head_size, use.head_size_v) &&
      hd256_refuses(facts, use)) {
    version = 2;
  }
  if (version == 4 && facts.major() >= 10 && use.head_size && *use.head_size > 128 &&
      !wide_head_has_kernel(use)) {
    version = 2;
  }
  return flash_attn_supported(facts, version) ? std::optional(version) : std::nullopt;
}

bool flash_attn_reads_kv(const SelectorFacts& facts, CacheDType dtype, const FlashAttnUse& use) {
  if (dtype == CacheDType::kFp8E5M2) return false;
  if (facts.platform == Platform::kXpu) return true;
  const std::optional<int> version = flash_attn_version(facts, use);
  if (facts.major() == 9) {
    return version == 3 || (version == 4 && (!use.head_size || use.head_size == 512));
  }
  return facts.major() == 10 && version == 4;
}

bool flash_attn_mla_supported(const SelectorFacts& facts) {
  return facts.platform == Platform::kXpu || flash_attn_supported(facts, 3);
}

bool trtllm_supported(const SelectorFacts& facts, bool prefill) {
  const SelectorEnvironment& e = facts.environment;
  if (facts.platform != Platform::kCuda || e.batch_invariant || !e.nvidia_artifactory) return false;
  if (facts.is(9, 0) || facts.major() == 12) return !prefill;
  return facts.major() == 10;
}

bool trtllm_usable(const SelectorFacts& facts, int num_heads, int num_kv_heads) {
  if (facts.environment.use_trtllm_attention == false) return false;
  return trtllm_supported(facts, false) && num_kv_heads != 0 && num_heads % num_kv_heads == 0;
}

FlashMlaGap flashmla_gap(const SelectorFacts& facts, bool sparse) {
  if (!facts.environment.flashmla_c) return FlashMlaGap::kNoC;
  if (!facts.environment.flashmla_extension_c) return FlashMlaGap::kNoExtensionC;
  if (!sparse && facts.major() != 9) return FlashMlaGap::kDenseDevice;
  if (sparse && facts.major() != 9 && facts.major() != 10) return FlashMlaGap::kSparseDevice;
  return FlashMlaGap::kNone;
}

bool gcn_arch_is(const SelectorFacts& facts, std::string_view arch) {
  return facts.platform == Platform::kRocm && facts.environment.gcn_arch == arch;
}

int cdna_version(const SelectorFacts& facts) {
  if (gcn_arch_is(facts, "gfx90a")) return 2;
  if (gcn_arch_is(facts, "gfx942")) return 3;
  if (gcn_arch_is(facts, "gfx950")) return 4;
  return gcn_arch_is(facts, "gfx1250") ? 5 : 0;
}

int rdna_version(const SelectorFacts& facts) {
  if (gcn_arch_is(facts, "gfx1200") || gcn_arch_is(facts, "gfx1201")) return 4;
  const bool is_gfx11 = facts.platform == Platform::kRocm &&
                        facts.environment.gcn_arch.size() == 7 &&
                        facts.environment.gcn_arch.starts_with("gfx11");
  return is_gfx11 ? 3 : 0;
}

bool aiter_supported(const SelectorFacts& facts) {
  return facts.environment.aiter_found && cdna_version(facts) > 2;
}

}  // namespace attn
