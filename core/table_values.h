// Values that tables of what vLLM answered have in common: readers that throw Error, and writers in
// the tables' own form.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "attn/block_sizes.h"
#include "attn/cache_dtype.h"
#include "attn/cache_layouts.h"
#include "attn/dtype.h"
#include "attn/selector_config.h"
#include "attn/selector_environment.h"
#include "core/strict_json.h"

namespace attn {

int int_from(const JsonNode& node);  // [-2^31, 2^31)
std::optional<int> optional_int_from(const JsonNode& node);
std::optional<bool> optional_bool_from(const JsonNode& node);
std::optional<std::string> optional_string_from(const JsonNode& node);
DType model_dtype_from(const JsonNode& node);
std::optional<CacheDType> cache_dtype_from(const JsonNode& node);  // null = none
AttentionType attention_type_from(const JsonNode& node);
std::optional<DeviceCapability> capability_from(const JsonNode& node);  // null = none

// head_size, dtype, kv_cache_dtype and block_size, and of the others those that differ from their
// defaults; `attn_type_plain` belongs to attn_type. Beside them `further_keys` may be there.
AttentionSelectorConfig selector_config_from(const JsonNode& node,
                                             std::span<const std::string_view> further_keys = {});
nlohmann::json to_json_value(const AttentionSelectorConfig& config);

// An entry is a size >= 1 or {"multiple_of": size}.
BlockSizes block_sizes_from(const JsonNode& node);
nlohmann::json to_json_value(const BlockSizes& sizes);

CacheLayouts cache_layouts_from(const JsonNode& node);
nlohmann::json to_json_value(const CacheLayouts& layouts);

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace attn
