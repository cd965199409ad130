// vLLM's own composites, composed of the selector's described backends.
#pragma once

#include <optional>
#include <string>

#include "attn/attention_backend.h"
#include "attn/selector_environment.h"
#include "composite/replay.h"

namespace attn::cli {

// TRITON_FLASHINFER or TRITON_FLASH_ATTN in these facts; null for another name. Its children have
// no builder and no implementation: making one throws VllmError NotImplementedError.
AttentionBackendPtr vllm_composite(const std::string& name, const SelectorFacts& facts);

// For tables (composite/replay.h).
std::optional<VllmBackend> vllm_backend_of_table(const std::string& name,
                                                 const DeviceCapability& device,
                                                 std::optional<int> flash_attn_version);

}  // namespace attn::cli
