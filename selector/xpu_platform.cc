// XPU: a fixed order of questions; only the MLA class is validated.
#include <fmt/core.h>

#include "selector/platforms.h"
#include "selector/python_text.h"
#include "selector/vllm_backends.h"

namespace attn {
namespace {

constexpr const char* kNotValidated =
    "Using Flash Attention on XPU with batch invariance enabled because it was explicitly "
    "requested. This backend has not been validated for batch invariance on XPU and may produce "
    "non-deterministic results across batch sizes.";
constexpr const char* kNoPrefixMask =
    "Using Flash Attention on XPU for a multimodal prefix-LM model because it was explicitly "
    "requested. The prefix-LM bidirectional mask cannot be applied, so image/video inputs will "
    "produce incorrect results; only use this for text-only workloads.";
constexpr const char* kInvariant =
    "VLLM_BATCH_INVARIANT is enabled. Using Triton Attention backend on XPU, which implements "
    "batch-invariant kernels.";
constexpr const char* kComposite =
    "Using the Triton/FlashAttention composite backend on XPU: batches with multimodal prefix "
    "masks run Triton Attention, causal batches run Flash Attention.";
constexpr const char* kPrefixFallback =
    "Flash Attention on XPU does not support multimodal prefix-LM attention. Falling back to "
    "Triton Attention backend.";
constexpr const char* kFloat32Fallback =
    "Flash Attention on XPU does not support float32 dtype. Falling back to Triton Attention "
    "backend.";

[[noreturn]] void refuse(bool use_mla) {
  throw VllmError("ValueError", fmt::format("Invalid attention backend for xpu, with use_mla: {}",
                                            use_mla ? "True" : "False"));
}

void select_xpu_mla(const BackendSelector& selector, const SelectionRequest& request,
                    Selection& out) {
  if (request.backend == "TRITON_MLA") {
    log_info(out, "Using Triton MLA backend on V1 engine.");
    return choose(selector, "TRITON_MLA", out);
  }
  if (request.backend && request.backend != "FLASH_ATTN_MLA") refuse(true);
  const BackendCheck check(xpu_flash_attn_mla(selector.facts()));
  const Reasons found = check.validate(Requirements(request.config), selector.facts());
  if (found.empty()) {
    log_info(out, "Using Flash Attention MLA backend on XPU.");
    out.path = kXpuFlashAttnMlaPath;
    return;
  }
  const std::vector<std::string> reasons =
      reason_texts(found, check, selector.facts(), request.config);
  if (request.backend) {
    throw VllmError("ValueError",
                    fmt::format("FlashAttnMLA on XPU is not valid for this configuration: {}",
                                python_list(reasons)));
  }
  log_info(out, fmt::format("FlashAttnMLA on XPU is not valid for this configuration ({}); falling "
                            "back to Triton MLA backend.",
                            python_tuple(reasons)));
  choose(selector, "TRITON_MLA", out);
}

void select_with_prefix(const BackendSelector& selector, const SelectionRequest& request,
                        Selection& out) {
  if (request.backend == "FLASH_ATTN") {
    log_warning(out, kNoPrefixMask);
    return choose(selector, "FLASH_ATTN", out);
  }
  const bool composite = !request.backend || request.backend == "TRITON_FLASH_ATTN";
  if (composite && request.config.dtype != DType::kF32) {
    const int head_size = request.config.head_size;
    if (selector.check("TRITON_FLASH_ATTN").backend().heads.allow(head_size)) {
      log_info(out, kComposite);
      return choose(selector, "TRITON_FLASH_ATTN", out);
    }
    if (request.backend) {
      throw VllmError(
          "ValueError",
          fmt::format("TRITON_FLASH_ATTN on XPU supports head sizes [256, 512], got {}.",
                      head_size));
    }
  }
  log_warning(out, kPrefixFallback);
  choose(selector, "TRITON_ATTN", out);
}

void select_plain(const BackendSelector& selector, const SelectionRequest& request,
                  Selection& out) {
  if (request.config.dtype == DType::kF32) {
    log_warning(out, kFloat32Fallback);
    return choose(selector, "TRITON_ATTN", out);
  }
  if (request.backend && request.backend != "FLASH_ATTN") refuse(false);
  log_info(out, "Using Flash Attention backend.");
  choose(selector, "FLASH_ATTN", out);
}

}  // namespace

void select_on_xpu(const BackendSelector& selector, const SelectionRequest& request,
                   Selection& out) {
  const AttentionSelectorConfig& config = request.config;
  if (config.kv_cache_dtype && is_turboquant(*config.kv_cache_dtype)) {
    log_info(out, "Using TurboQuant attention backend.");
    return choose(selector, "TURBOQUANT", out);
  }
  if (config.use_sparse) {
    log_info(out, "Using XPU MLA Sparse backend.");
    return choose(selector, "XPU_MLA_SPARSE", out);
  }
  if (config.use_mla) return select_xpu_mla(selector, request, out);
  if (request.backend == "TRITON_ATTN") {
    log_info(out, "Using Triton backend.");
    return choose(selector, "TRITON_ATTN", out);
  }
  if (config.use_batch_invariant && request.backend == "FLASH_ATTN") {
    log_warning(out, kNotValidated);
    return choose(selector, "FLASH_ATTN", out);
  }
  if (config.use_batch_invariant) {
    log_info(out, kInvariant);
    return choose(selector, "TRITON_ATTN", out);
  }
  if (config.use_mm_prefix) return select_with_prefix(selector, request, out);
  select_plain(selector, request, out);
}

}  // namespace attn
