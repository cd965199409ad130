// The backend settings of vLLM's AttentionConfig, as a user writes them.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "attn/backend_registry.h"
#include "attn/layer_request.h"

namespace attn {

struct AttentionConfig {
  std::optional<std::string> backend;  // member; none = automatic
  BackendPerKind backend_per_kind;
  std::string minimax_m3_msa_decode_backend = "triton";
};

// Reads `backend` ("auto" in any case, a member's name in any case, or an alias of MiniMax's decode
// kernel) and `backend_per_kind` (kind -> a member's name in any case). Throws VllmError
// ValidationError, whose text is the one behind "Value error, ".
AttentionConfig parse_attention_config(const std::optional<std::string>& backend,
                                       const std::map<std::string, std::string>& backend_per_kind,
                                       const BackendRegistry& registry);

}  // namespace attn
