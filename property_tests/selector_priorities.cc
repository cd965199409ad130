#include "property_tests/selector_priorities.h"

#include <algorithm>

#include "property_tests/selector_kernels.h"

namespace attn::property_tests {
namespace {

Names cuda_mla(int major, const SelectionRequest& request) {
  if (major == 12) return {"TRITON_MLA", "FLASHINFER_MLA_SPARSE_SM120"};
  if (major == 10) {
    Names names = {"FLASHINFER_MLA", "TOKENSPEED_MLA", "CUTLASS_MLA",
                   "FLASH_ATTN_MLA", "FLASHMLA",       "TRITON_MLA"};
    const bool few_heads = request.num_heads && *request.num_heads <= 16;
    Names sparse = {"FLASHMLA_SPARSE", "FLASHINFER_MLA_SPARSE"};
    if (quantised(request.config.kv_cache_dtype)) {
      sparse = {"FLASHINFER_MLA_SPARSE", "FLASHMLA_SPARSE"};
    } else if (few_heads) {
      sparse = {"FLASH_ATTN_MLA_SPARSE_FA4", "FLASHINFER_MLA_SPARSE", "FLASHMLA_SPARSE"};
    }
    names.insert(names.end(), sparse.begin(), sparse.end());
    return names;
  }
  Names names = {"FLASH_ATTN_MLA",        "FLASHMLA",       "FLASHINFER_MLA", "TRITON_MLA",
                 "FLASH_ATTN_MLA_SPARSE", "FLASHMLA_SPARSE"};
  const auto place = request.config.head_size == 512 ? names.begin() + 4 : names.end();
  names.insert(place, "FLASHINFER_MLA_SPARSE_SM90");
  return names;
}

int cdna(std::string_view arch) {
  if (arch.starts_with("gfx90a")) return 2;
  if (arch.starts_with("gfx942")) return 3;
  if (arch.starts_with("gfx950")) return 4;
  return arch.starts_with("gfx1250") ? 5 : 0;
}

}  // namespace

Names written_cuda_priorities(DeviceCapability capability, const SelectionRequest& request) {
  const AttentionSelectorConfig& config = request.config;
  if (config.use_mla) return cuda_mla(capability.major, request);
  if (capability.major == 10 && !config.use_non_causal) {
    Names names = {"FLASHINFER", "FLASH_ATTN", "TRITON_ATTN", "FLEX_ATTENTION", "TURBOQUANT"};
    if (config.use_mm_prefix) names.insert(names.begin(), "TRITON_FLASHINFER");
    return names;
  }
  Names names = {"FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION", "TURBOQUANT"};
  if (capability.major == 9 && config.use_mm_prefix) {
    names.insert(names.begin(), "TRITON_FLASH_ATTN");
  }
  return names;
}

Names written_rocm_priorities(const SelectorEnvironment& e, const AttentionSelectorConfig& config) {
  if (config.use_sparse) return {"ROCM_AITER_MLA_SPARSE"};
  const bool aiter_supported = e.aiter_found && cdna(e.gcn_arch) > 2;
  const bool aiter_on = aiter_supported && e.aiter_enabled;
  if (config.use_mla) {
    if (!aiter_on || !e.aiter_mla) return {"TRITON_MLA"};
    return {"ROCM_AITER_MLA", "TRITON_MLA", "ROCM_AITER_TRITON_MLA"};
  }
  const bool gfx1200 = e.gcn_arch.starts_with("gfx1200") || e.gcn_arch.starts_with("gfx1201");
  const bool unified_first = !aiter_supported && e.aiter_found && gfx1200 && e.aiter_enabled;
  const bool for_encoder_decoder = e.model && e.model->attn_type == AttentionType::kEncoderDecoder;
  Names names;
  if (unified_first) names.emplace_back("ROCM_AITER_UNIFIED_ATTN");
  if (!config.use_kv_connector && !for_encoder_decoder) names.emplace_back("ROCM_ATTN");
  if (aiter_on && e.aiter_mha) names.emplace_back("ROCM_AITER_FA");
  if (aiter_supported) names.emplace_back("ROCM_AITER_UNIFIED_ATTN");
  for (const std::string_view name : {"TRITON_ATTN", "TURBOQUANT", "ROCM_OCTAVE", "ULTRAQUANT"}) {
    names.push_back(name);
  }
  return names;
}

}  // namespace attn::property_tests
