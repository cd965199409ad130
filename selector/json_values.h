// The values of the selector's tables: readers that throw Error, and writers in the tables' own
// form.
#pragma once

#include <nlohmann/json.hpp>

#include "attn/attention_config.h"
#include "attn/layer_request.h"
#include "attn/selector.h"
#include "core/strict_json.h"
#include "core/table_values.h"

namespace attn {

Platform platform_from(const JsonNode& node);

BackendPerKind backend_per_kind_from(const JsonNode& node);
RunConfig run_config_from(const JsonNode& node, const RunConfig& defaults);
LayerArguments layer_arguments_from(const JsonNode& node);

nlohmann::json to_json_value(const VllmError& error);  // {"error": type, "text": text}
nlohmann::json outcome_json(const Selection& selection);
nlohmann::json logs_json(const Selection& selection);
nlohmann::json candidates_json(const Selection& selection);

}  // namespace attn
