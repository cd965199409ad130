// Policies as the tables of composites describe them.
#pragma once

#include <nlohmann/json.hpp>

#include "attn/routing_policy.h"
#include "core/strict_json.h"

namespace attn {

// A policy whose level, capture child and image masks are the table's word, not its own.
struct TablePolicy {
  RoutingPolicyPtr policy;
  bool is_boolean = false;  // a `constant` policy whose variant was written as a boolean

  // The tag that vLLM leaves on metadata after a build.
  nlohmann::json tag(int child) const {
    return is_boolean ? nlohmann::json(child != 0) : nlohmann::json(child);
  }
};

// Throws Error, naming the path, for what is not a policy.
TablePolicy table_policy_from(const JsonNode& node);

// A child index that may be written as a boolean.
int variant_from(const JsonNode& node);

}  // namespace attn
