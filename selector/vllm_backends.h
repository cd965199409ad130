// The attention backends of vLLM 0.33.0, described. Each row is one function of the facts; rows of
// several platforms ask which one they are on.
#pragma once

#include <span>
#include <string_view>

#include "attn/attention_backend.h"
#include "attn/composite.h"
#include "attn/described_backend.h"
#include "attn/selector_environment.h"

namespace attn {

struct BackendRow {
  std::string_view member;  // of AttentionBackendEnum
  DescribedBackend (*describe)(const SelectorFacts&);
  std::string_view platforms;  // where selection considers it: "cuda,rocm"
};

std::span<const BackendRow> dense_backends();           // outside MLA, of CUDA and everywhere
std::span<const BackendRow> mla_backends();             // of CUDA and everywhere
std::span<const BackendRow> other_platform_backends();  // of ROCm, CPU and XPU

// Rows that others derive from.
DescribedBackend flash_attn(const SelectorFacts& facts);
DescribedBackend triton_attn(const SelectorFacts& facts);
DescribedBackend flashinfer(const SelectorFacts& facts);
DescribedBackend flash_attn_mla(const SelectorFacts& facts);
DescribedBackend causal_flash_attn(const SelectorFacts& facts);  // as TRITON_FLASH_ATTN's child

// A composite with the mm-prefix policy: batches with image ranges go to the general child.
struct VllmComposite {
  struct Child {
    ClassName full_name;
    DescribedBackend (*describe)(const SelectorFacts&);
  };
  CompositeOptions options;
  Child general;
  Child causal;
};

// TRITON_FLASH_ATTN or TRITON_FLASHINFER; nullptr for another member.
const VllmComposite* find_vllm_composite(std::string_view member);

// The class that XPU puts in FLASH_ATTN_MLA's place; no member of the registry.
DescribedBackend xpu_flash_attn_mla(const SelectorFacts& facts);
inline constexpr std::string_view kXpuFlashAttnMlaPath =
    "vllm.v1.attention.backends.mla.flashattn_mla.XPUFlashAttnMLABackend";

// The row of a member; nullptr when nothing describes it (CUSTOM, TORCH_SDPA, NO_ATTENTION).
const BackendRow* find_backend_row(std::string_view member);

// The rows of MambaAttentionBackendEnum.
std::span<const BackendRow> mamba_backends();

}  // namespace attn
