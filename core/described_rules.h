// A backend's supports_combination, described in JSON.
#pragma once

#include <memory>

#include "attn/described_backend.h"
#include "core/strict_json.h"

namespace attn {

// A list of {"field", "equals", "reason"}: the first rule whose field of the configuration, or
// major capability of the device, has the value gives the reason. Throws Error, naming the path.
std::shared_ptr<const CombinationRules> combination_rules_from(const JsonNode& node);

}  // namespace attn
