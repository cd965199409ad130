#include "core/table_values.h"

#include <limits>

#include "core/config_switches.h"

namespace attn {

using nlohmann::json;

int int_from(const JsonNode& node) {
  const std::int64_t value = node.integer(std::numeric_limits<int>::min());
  if (value > std::numeric_limits<int>::max()) node.fail("an integer < 2^31");
  return static_cast<int>(value);
}

std::optional<int> optional_int_from(const JsonNode& node) {
  return node.is_null() ? std::nullopt : std::optional(int_from(node));
}

std::optional<bool> optional_bool_from(const JsonNode& node) {
  return node.is_null() ? std::nullopt : std::optional(node.boolean());
}

std::optional<std::string> optional_string_from(const JsonNode& node) {
  return node.is_null() ? std::nullopt : std::optional(node.string());
}

DType model_dtype_from(const JsonNode& node) {
  const std::optional<DType> dtype = model_dtype_from_name(node.string());
  if (!dtype) node.fail("float16, bfloat16 or float32");
  return *dtype;
}

std::optional<CacheDType> cache_dtype_from(const JsonNode& node) {
  if (node.is_null()) return std::nullopt;
  const std::optional<CacheDType> dtype = cache_dtype_from_name(node.string());
  if (!dtype) node.fail("a cache dtype or null");
  return dtype;
}

AttentionType attention_type_from(const JsonNode& node) {
  const std::optional<AttentionType> type = attention_type_from_name(node.string());
  if (!type) node.fail("decoder, encoder, encoder_only or encoder_decoder");
  return *type;
}

std::optional<DeviceCapability> capability_from(const JsonNode& node) {
  if (node.is_null()) return std::nullopt;
  const std::vector<JsonNode> pair = node.elements();
  if (pair.size() != 2) node.fail("[major, minor] or null");
  const DeviceCapability capability{int_from(pair[0]), int_from(pair[1])};
  if (capability.major < 0 || capability.minor < 0) node.fail("[major, minor], not negative");
  return capability;
}

AttentionSelectorConfig selector_config_from(const JsonNode& node,
                                             std::span<const std::string_view> further_keys) {
  std::vector<std::string_view> known = {"head_size",  "dtype",     "kv_cache_dtype",
                                         "block_size", "attn_type", "attn_type_plain"};
  for (const ConfigSwitch& one : kConfigSwitches) known.push_back(one.name);
  known.insert(known.end(), further_keys.begin(), further_keys.end());
  node.expect_only(known);
  AttentionSelectorConfig config;
  config.head_size = int_from(node.at("head_size"));
  config.dtype = model_dtype_from(node.at("dtype"));
  config.kv_cache_dtype = cache_dtype_from(node.at("kv_cache_dtype"));
  config.block_size = optional_int_from(node.at("block_size"));
  for (const ConfigSwitch& one : kConfigSwitches) {
    if (node.has(one.name)) config.*one.field = node.at(one.name).boolean();
  }
  if (node.has("attn_type")) config.attn_type.type = attention_type_from(node.at("attn_type"));
  if (node.has("attn_type_plain")) config.attn_type.plain = node.at("attn_type_plain").boolean();
  return config;
}

json to_json_value(const AttentionSelectorConfig& config) {
  json value = {{"head_size", config.head_size},
                {"dtype", model_dtype_name(config.dtype)},
                {"kv_cache_dtype", nullptr},
                {"block_size", or_null(config.block_size)}};
  if (config.kv_cache_dtype) value["kv_cache_dtype"] = name(*config.kv_cache_dtype);
  for (const ConfigSwitch& one : kConfigSwitches) {
    if (config.*one.field) value[one.name] = true;
  }
  const AttentionTypeArgument type = config.attn_type;
  if (type.type != AttentionType::kDecoder || type.plain) value["attn_type"] = name(type.type);
  if (type.plain) value["attn_type_plain"] = true;
  return value;
}

BlockSizes block_sizes_from(const JsonNode& node) {
  BlockSizes sizes;
  for (const JsonNode& element : node.elements()) {
    const bool multiples = element.is_object();
    if (multiples) element.expect_only({"multiple_of"});
    const JsonNode size = multiples ? element.at("multiple_of") : element;
    sizes.push_back({int_from(size), multiples});
    if (sizes.back().size < 1) size.fail("an integer >= 1");
  }
  return sizes;
}

json to_json_value(const BlockSizes& sizes) {
  json list = json::array();
  for (const BlockSize entry : sizes) {
    list.push_back(entry.multiples ? json{{"multiple_of", entry.size}} : json(entry.size));
  }
  return list;
}

CacheLayouts cache_layouts_from(const JsonNode& node) {
  CacheLayouts layouts;
  for (const JsonNode& element : node.elements()) {
    const std::optional<CacheLayout> layout = cache_layout_from_name(element.string());
    if (!layout) element.fail("a KV cache layout such as LBNHC");
    layouts.push_back(*layout);
  }
  return layouts;
}

json to_json_value(const CacheLayouts& layouts) {
  json list = json::array();
  for (const CacheLayout layout : layouts) list.push_back(name(layout));
  return list;
}

}  // namespace attn
