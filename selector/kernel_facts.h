// Which kernels an installation has for a device: vLLM's helper functions, as functions of facts.
#pragma once

#include <optional>
#include <string_view>

#include "attn/selector_environment.h"

namespace attn {

// Of a machine without devices, for what follows from a backend alone.
inline const SelectorFacts kNoFacts = {Platform::kCpu, std::nullopt, {}};

// FlashAttention `version` (2, 3, 4) is built and made for the device.
bool flash_attn_supported(const SelectorFacts& facts, int version);

// What a layer asks of FlashAttention, as far as it is known.
struct FlashAttnUse {
  std::optional<int> head_size;
  std::optional<int> head_size_v;
  bool has_sinks = false;
  bool requires_alibi = false;    // selection never sets this
  bool requires_softcap = false;  // nor this
  std::optional<int> block_size;
  bool hd256 = false;  // the caller can use FA4's kernel for head size 256
};

// The version that serves the use; none when that one is not there.
std::optional<int> flash_attn_version(const SelectorFacts& facts, const FlashAttnUse& use);

// FA4's kernel for head size 256 exists for these head sizes on this device.
bool flash_attn_hd256_applies(const SelectorFacts& facts, std::optional<int> head_size,
                              std::optional<int> head_size_v);

// FlashAttention reads a quantised cache of this dtype for this use.
bool flash_attn_reads_kv(const SelectorFacts& facts, CacheDType dtype, const FlashAttnUse& use);

bool flash_attn_mla_supported(const SelectorFacts& facts);

// FlashInfer's TensorRT-LLM kernels.
bool trtllm_supported(const SelectorFacts& facts, bool prefill);
bool trtllm_usable(const SelectorFacts& facts, int num_heads, int num_kv_heads);  // decode

enum class FlashMlaGap : std::uint8_t { kNone, kNoC, kNoExtensionC, kDenseDevice, kSparseDevice };
FlashMlaGap flashmla_gap(const SelectorFacts& facts, bool sparse);

// AMD's generations by gcn_arch; 0 = none of them, or no ROCm device.
int cdna_version(const SelectorFacts& facts);
int rdna_version(const SelectorFacts& facts);
bool gcn_arch_is(const SelectorFacts& facts, std::string_view arch);

bool aiter_supported(const SelectorFacts& facts);

}  // namespace attn
