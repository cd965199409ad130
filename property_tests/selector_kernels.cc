#include "property_tests/selector_kernels.h"

#include <array>

namespace attn::property_tests {
namespace {

bool quantised_name(std::string_view dtype) {
  for (const std::string_view prefix : {"fp8", "nvfp4", "turboquant_", "octave_"}) {
    if (dtype.starts_with(prefix)) return true;
  }
  return dtype == "ultraquant_4bit" || dtype.ends_with("_per_token_head");
}

}  // namespace

bool begins_with(CacheDType dtype, std::string_view prefix) {
  return name(dtype).starts_with(prefix);
}

bool quantised(std::optional<CacheDType> dtype) {
  static const auto kAnswers = [] {
    std::array<bool, kNumCacheDTypes> answers{};
    for (std::size_t i = 0; i < answers.size(); ++i) {
      answers[i] = quantised_name(name(static_cast<CacheDType>(i)));
    }
    return answers;
  }();
  return dtype && kAnswers[static_cast<std::size_t>(*dtype)];
}

bool CudaKernels::reaches(int major, int minor) const {
  return major_ > major || (major_ == major && capability_.minor >= minor);
}

bool CudaKernels::is(int major, int minor) const {
  return major_ == major && capability_.minor == minor;
}

bool CudaKernels::fa_supported(int version) const {
  if (version == 2) return e_.fa2_built && major_ >= 8;
  if (version == 3) return e_.fa3_built && major_ == 9;
  return version == 4 && e_.fa4_built && (major_ == 9 || major_ == 10 || major_ == 11);
}

bool CudaKernels::hd256_applies(std::optional<int> head_size,
                                std::optional<int> head_size_v) const {
  return head_size && *head_size == 256 && head_size_v.value_or(256) == 256 &&
         (major_ == 10 || major_ == 11);
}

bool CudaKernels::hd256_refused(const FlashArguments& a) const {
  if (!a.hd256 || a.has_sinks) return true;
  if (e_.model && e_.model->hf.attn_logit_softcapping &&
      *e_.model->hf.attn_logit_softcapping != 0.0) {
    return true;
  }
  if (quantised(e_.cache_dtype)) return true;
  if (a.block_size && *a.block_size % 128 != 0) return true;
  if (e_.model && (e_.model->is_mm_prefix_lm || e_.model->rswa_window)) return true;
  return e_.dcp_size > 1;
}

std::optional<int> CudaKernels::fa_version(const FlashArguments& a) const {
  int v = 2;
  if (major_ == 9 && fa_supported(3)) {
    v = 3;
  } else if (major_ == 10 && fa_supported(4)) {
    v = 4;
  }
  if (e_.flash_attn_version) v = *e_.flash_attn_version;
  if (major_ >= 10 && v == 3) v = fa_supported(4) ? 4 : 2;
  if (v == 3 && major_ == 9 && fa_supported(4)) {
    const bool large = a.head_size && *a.head_size > 256;
    const bool sinks_with_two_sizes =
        a.has_sinks && a.head_size && a.head_size_v && *a.head_size != *a.head_size_v;
    if (large || sinks_with_two_sizes || (e_.model && e_.model->is_diffusion)) v = 4;
  }
  if (e_.batch_invariant && v == 4) v = 2;
  if (v == 4 && hd256_applies(a.head_size, a.head_size_v) && hd256_refused(a)) v = 2;
  if (v == 4 && major_ >= 10 && a.head_size && *a.head_size > 128) {
    const bool is_256 = *a.head_size == 256 && a.head_size_v.value_or(256) == 256;
    const bool is_192 = *a.head_size == 192 && a.head_size_v && *a.head_size_v == 128;
    if (!is_256 && !is_192) v = 2;
  }
  return fa_supported(v) ? std::optional(v) : std::nullopt;
}

bool CudaKernels::fa_kv_ok(std::optional<CacheDType> dtype, const FlashArguments& a) const {
  if (dtype == CacheDType::kFp8E5M2) return false;
  const int v = fa_version(a).value_or(0);
  if (major_ == 9) return v == 3 || (v == 4 && (!a.head_size || *a.head_size == 512));
  return major_ == 10 && v == 4;
}

bool CudaKernels::trtllm(bool prefill) const {
  if (e_.batch_invariant || !e_.nvidia_artifactory) return false;
  if (is(9, 0) || major_ == 12) return !prefill;
  return major_ == 10;
}

bool CudaKernels::trtllm_usable(int num_heads, int num_kv_heads) const {
  if (e_.use_trtllm_attention && !*e_.use_trtllm_attention) return false;
  return trtllm(false) && num_heads % num_kv_heads == 0;
}

std::string_view CudaKernels::flashmla_reason(bool sparse) const {
  if (!e_.flashmla_c) {
    return "vllm._flashmla_C is not available, likely was not compiled due to insufficient nvcc "
           "version or a supported arch was not in the list of target arches to compile for.";
  }
  if (!e_.flashmla_extension_c) {
    return "vllm._flashmla_extension_C is not available, likely was not compiled due to a build "
           "error.";
  }
  if (!sparse && major_ != 9) return "FlashMLA Dense is only supported on Hopper devices.";
  if (sparse && major_ != 9 && major_ != 10) {
    return "FlashMLA Sparse is only supported on Hopper and Blackwell DC devices.";
  }
  return {};
}

}  // namespace attn::property_tests
