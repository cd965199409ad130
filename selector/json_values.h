// The values of decision tables: readers that throw Error, and writers in the tables' own form.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attn/attention_config.h"
#include "attn/block_sizes.h"
#include "attn/cache_layouts.h"
#include "attn/layer_request.h"
#include "attn/selector.h"
#include "core/strict_json.h"

namespace attn {

int int_from(const JsonNode& node);  // [-2^31, 2^31)
std::optional<int> optional_int_from(const JsonNode& node);
std::optional<std::string> optional_string_from(const JsonNode& node);
std::optional<CacheDType> cache_dtype_from(const JsonNode& node);  // null = none
AttentionType attention_type_from(const JsonNode& node);
Platform platform_from(const JsonNode& node);
std::optional<DeviceCapability> capability_from(const JsonNode& node);  // null = none

// Fields that differ from their defaults; `attn_type_plain` belongs to attn_type.
AttentionSelectorConfig selector_config_from(const JsonNode& node);
nlohmann::json to_json_value(const AttentionSelectorConfig& config);

// An entry is a size >= 1 or {"multiple_of": size}.
BlockSizes block_sizes_from(const JsonNode& node);
nlohmann::json to_json_value(const BlockSizes& sizes);

CacheLayouts cache_layouts_from(const JsonNode& node);
nlohmann::json to_json_value(const CacheLayouts& layouts);

BackendPerKind backend_per_kind_from(const JsonNode& node);
RunConfig run_config_from(const JsonNode& node, const RunConfig& defaults);
LayerArguments layer_arguments_from(const JsonNode& node);

nlohmann::json to_json_value(const VllmError& error);  // {"error": type, "text": text}
nlohmann::json outcome_json(const Selection& selection);
nlohmann::json logs_json(const Selection& selection);
nlohmann::json candidates_json(const Selection& selection);

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace attn
