// XPU's part of selector_choice.h.
#include <fmt/core.h>

#include "property_tests/selector_choice.h"
#include "selector/vllm_backends.h"

namespace attn::property_tests {
namespace {

constexpr const char* kNotValidated =
    "Using Flash Attention on XPU with batch invariance enabled because it was explicitly "
    "requested. This backend has not been validated for batch invariance on XPU and may produce "
    "non-deterministic results across batch sizes.";
constexpr const char* kNoMask =
    "Using Flash Attention on XPU for a multimodal prefix-LM model because it was explicitly "
    "requested. The prefix-LM bidirectional mask cannot be applied, so image/video inputs will "
    "produce incorrect results; only use this for text-only workloads.";
constexpr const char* kInvariant =
    "VLLM_BATCH_INVARIANT is enabled. Using Triton Attention backend on XPU, which implements "
    "batch-invariant kernels.";
constexpr const char* kComposite =
    "Using the Triton/FlashAttention composite backend on XPU: batches with multimodal prefix "
    "masks run Triton Attention, causal batches run Flash Attention.";
constexpr const char* kNoPrefix =
    "Flash Attention on XPU does not support multimodal prefix-LM attention. Falling back to "
    "Triton Attention backend.";
constexpr const char* kNoFloat32 =
    "Flash Attention on XPU does not support float32 dtype. Falling back to Triton Attention "
    "backend.";

std::string joined_quoted(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "'" : ", '") + text + "'";
  return list;
}

}  // namespace

void WrittenSelector::xpu_mla(const SelectionRequest& request, Selection& out) const {
  const std::string asked = request.backend.value_or("");
  if (asked == "TRITON_MLA") {
    out.logs.push_back({LogLevel::kInfo, "Using Triton MLA backend on V1 engine."});
    return answer("TRITON_MLA", out);
  }
  if (!asked.empty() && asked != "FLASH_ATTN_MLA") {
    throw VllmError("ValueError", "Invalid attention backend for xpu, with use_mla: True");
  }
  const DescribedBackend row = xpu_flash_attn_mla(facts_);
  const std::vector<std::string> reasons = found_texts(ListedClass(row, facts_), request.config);
  if (reasons.empty()) {
    out.logs.push_back({LogLevel::kInfo, "Using Flash Attention MLA backend on XPU."});
    out.path = "vllm.v1.attention.backends.mla.flashattn_mla.XPUFlashAttnMLABackend";
    return;
  }
  if (asked == "FLASH_ATTN_MLA") {
    throw VllmError("ValueError",
                    fmt::format("FlashAttnMLA on XPU is not valid for this configuration: [{}]",
                                joined_quoted(reasons)));
  }
  out.logs.push_back(
      {LogLevel::kInfo, fmt::format("FlashAttnMLA on XPU is not valid for this configuration "
                                    "(({}{})); falling back to Triton MLA backend.",
                                    joined_quoted(reasons), reasons.size() == 1 ? "," : "")});
  answer("TRITON_MLA", out);
}

void WrittenSelector::on_xpu(const SelectionRequest& request, Selection& out) const {
  const AttentionSelectorConfig& c = request.config;
  const std::string asked = request.backend.value_or("");
  const auto take = [&](LogLevel level, const char* text, const char* member) {
    out.logs.push_back({level, text});
    answer(member, out);
  };
  if (c.kv_cache_dtype && name(*c.kv_cache_dtype).starts_with("turboquant_")) {
    return take(LogLevel::kInfo, "Using TurboQuant attention backend.", "TURBOQUANT");
  }
  if (c.use_sparse) {
    return take(LogLevel::kInfo, "Using XPU MLA Sparse backend.", "XPU_MLA_SPARSE");
  }
  if (c.use_mla) return xpu_mla(request, out);
  if (asked == "TRITON_ATTN") return take(LogLevel::kInfo, "Using Triton backend.", "TRITON_ATTN");
  if (c.use_batch_invariant) {
    return asked == "FLASH_ATTN" ? take(LogLevel::kWarning, kNotValidated, "FLASH_ATTN")
                                 : take(LogLevel::kInfo, kInvariant, "TRITON_ATTN");
  }
  if (c.use_mm_prefix) {
    if (asked == "FLASH_ATTN") return take(LogLevel::kWarning, kNoMask, "FLASH_ATTN");
    const bool may = asked.empty() || asked == "TRITON_FLASH_ATTN";
    if (may && c.dtype != DType::kF32) {
      if (get_class("TRITON_FLASH_ATTN").supports_head_size(c.head_size)) {
        return take(LogLevel::kInfo, kComposite, "TRITON_FLASH_ATTN");
      }
      if (!asked.empty()) {
        throw VllmError(
            "ValueError",
            fmt::format("TRITON_FLASH_ATTN on XPU supports head sizes [256, 512], got {}.",
                        c.head_size));
      }
    }
    return take(LogLevel::kWarning, kNoPrefix, "TRITON_ATTN");
  }
  if (c.dtype == DType::kF32) return take(LogLevel::kWarning, kNoFloat32, "TRITON_ATTN");
  if (!asked.empty() && asked != "FLASH_ATTN") {
    throw VllmError("ValueError", "Invalid attention backend for xpu, with use_mla: False");
  }
  take(LogLevel::kInfo, "Using Flash Attention backend.", "FLASH_ATTN");
}

}  // namespace attn::property_tests
