// Rows of the routing table that say which calls the children of a composite see.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "attn/composite.h"
#include "composite/scripted_backend.h"
#include "core/strict_json.h"

namespace attn {

// The members `general` and `causal` of a row, with one log.
struct ScriptedPair {
  explicit ScriptedPair(const JsonNode& row);

  // Composed as vLLM does it.
  AttentionBackendPtr composed(const RoutingPolicyPtr& policy) const;

  std::shared_ptr<CallLog> log = std::make_shared<CallLog>();
  AttentionBackendPtr general;
  AttentionBackendPtr causal;
};

// Kind `build`: a builder, step by step.
nlohmann::json builder_answer(const KvCacheSpec& spec, const JsonNode& row);

// Kind `impl`: an implementation, step by step.
nlohmann::json impl_answer(const JsonNode& row);

}  // namespace attn
