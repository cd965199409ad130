#include "selector/json_values.h"

#include <limits>

#include "attn/error.h"

namespace attn {
namespace {

using nlohmann::json;
using Config = AttentionSelectorConfig;

struct Switch {
  const char* name;
  bool Config::*field;
};
constexpr Switch kSwitches[] = {{"use_mla", &Config::use_mla},
                                {"has_sink", &Config::has_sink},
                                {"use_sparse", &Config::use_sparse},
                                {"use_mm_prefix", &Config::use_mm_prefix},
                                {"use_per_head_quant_scales", &Config::use_per_head_quant_scales},
                                {"has_sliding_window", &Config::has_sliding_window},
                                {"use_non_causal", &Config::use_non_causal},
                                {"use_batch_invariant", &Config::use_batch_invariant},
                                {"use_kv_connector", &Config::use_kv_connector},
                                {"use_pcp", &Config::use_pcp},
                                {"use_adaptive_verification", &Config::use_adaptive_verification},
                                {"use_dcp", &Config::use_dcp},
                                {"use_rswa", &Config::use_rswa}};

DType dtype_from(const JsonNode& node) {
  const std::optional<DType> dtype = model_dtype_from_name(node.string());
  if (!dtype) node.fail("float16, bfloat16 or float32");
  return *dtype;
}

std::optional<bool> optional_bool_from(const JsonNode& node) {
  return node.is_null() ? std::nullopt : std::optional(node.boolean());
}

}  // namespace

int int_from(const JsonNode& node) {
  const std::int64_t value = node.integer(std::numeric_limits<int>::min());
  if (value > std::numeric_limits<int>::max()) node.fail("an integer < 2^31");
  return static_cast<int>(value);
}

std::optional<int> optional_int_from(const JsonNode& node) {
  return node.is_null() ? std::nullopt : std::optional(int_from(node));
}

std::optional<std::string> optional_string_from(const JsonNode& node) {
  return node.is_null() ? std::nullopt : std::optional(node.string());
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

Platform platform_from(const JsonNode& node) {
  const std::optional<Platform> platform = platform_from_name(node.string());
  if (!platform) node.fail("cuda, rocm, xpu or cpu");
  return *platform;
}

std::optional<DeviceCapability> capability_from(const JsonNode& node) {
  if (node.is_null()) return std::nullopt;
  const std::vector<JsonNode> pair = node.elements();
  if (pair.size() != 2) node.fail("[major, minor] or null");
  const DeviceCapability capability{int_from(pair[0]), int_from(pair[1])};
  if (capability.major < 0 || capability.minor < 0) node.fail("[major, minor], not negative");
  return capability;
}

Config selector_config_from(const JsonNode& node) {
  node.expect_only({"head_size", "dtype", "kv_cache_dtype", "block_size", "use_mla", "has_sink",
                    "use_sparse", "use_mm_prefix", "use_per_head_quant_scales", "attn_type",
                    "attn_type_plain", "has_sliding_window", "use_non_causal",
                    "use_batch_invariant", "use_kv_connector", "use_pcp", "use_dcp",
                    "use_adaptive_verification", "use_rswa"});
  Config config;
  config.head_size = int_from(node.at("head_size"));
  config.dtype = dtype_from(node.at("dtype"));
  config.kv_cache_dtype = cache_dtype_from(node.at("kv_cache_dtype"));
  config.block_size = optional_int_from(node.at("block_size"));
  for (const Switch& one : kSwitches) {
    if (node.has(one.name)) config.*one.field = node.at(one.name).boolean();
  }
  if (node.has("attn_type")) config.attn_type.type = attention_type_from(node.at("attn_type"));
  if (node.has("attn_type_plain")) config.attn_type.plain = node.at("attn_type_plain").boolean();
  return config;
}

json to_json_value(const Config& config) {
  json value = {{"head_size", config.head_size},
                {"dtype", model_dtype_name(config.dtype)},
                {"kv_cache_dtype", nullptr},
                {"block_size", or_null(config.block_size)}};
  if (config.kv_cache_dtype) value["kv_cache_dtype"] = name(*config.kv_cache_dtype);
  for (const Switch& one : kSwitches) {
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

BackendPerKind backend_per_kind_from(const JsonNode& node) {
  BackendPerKind per_kind;
  for (const auto& [key, value] : node.members()) {
    const std::optional<CacheGroupKind> kind = cache_group_kind_from_name(key);
    if (!kind) value.fail("a known KV cache group kind as key");
    per_kind[*kind] = value.string();
  }
  return per_kind;
}

RunConfig run_config_from(const JsonNode& node, const RunConfig& defaults) {
  node.expect_only({"user_specified_block_size", "block_size", "cache_config", "cache_dtype",
                    "kv_transfer", "adaptive_verification", "model_tag", "use_non_causal",
                    "batch_invariant", "pcp_size", "dcp_size", "rswa_window", "model_config",
                    "backend", "backend_per_kind"});
  RunConfig run = defaults;
  const auto boolean = [&](std::string_view key, bool& field) {
    if (node.has(key)) field = node.at(key).boolean();
  };
  const auto integer = [&](std::string_view key, int& field) {
    if (node.has(key)) field = int_from(node.at(key));
  };
  boolean("user_specified_block_size", run.user_specified_block_size);
  integer("block_size", run.block_size);
  boolean("cache_config", run.cache_config);
  if (node.has("cache_dtype")) run.cache_dtype = node.at("cache_dtype").string();
  if (node.has("kv_transfer")) run.kv_transfer = optional_bool_from(node.at("kv_transfer"));
  if (node.has("adaptive_verification")) {
    run.adaptive_verification = optional_bool_from(node.at("adaptive_verification"));
  }
  if (node.has("model_tag")) run.model_tag = node.at("model_tag").string();
  boolean("use_non_causal", run.use_non_causal);
  boolean("batch_invariant", run.batch_invariant);
  integer("pcp_size", run.pcp_size);
  integer("dcp_size", run.dcp_size);
  if (node.has("rswa_window")) run.rswa_window = optional_int_from(node.at("rswa_window"));
  boolean("model_config", run.model_config);
  if (node.has("backend")) run.backend = optional_string_from(node.at("backend"));
  if (node.has("backend_per_kind")) {
    run.backend_per_kind = backend_per_kind_from(node.at("backend_per_kind"));
  }
  return run;
}

LayerArguments layer_arguments_from(const JsonNode& node) {
  node.expect_only({"head_size", "dtype", "kv_cache_dtype", "use_mla", "has_sink", "use_sparse",
                    "use_mm_prefix", "use_per_head_quant_scales", "attn_type", "attn_type_plain",
                    "num_heads", "has_sliding_window"});
  LayerArguments layer;
  const auto boolean = [&](std::string_view key, bool& field) {
    if (node.has(key)) field = node.at(key).boolean();
  };
  layer.head_size = int_from(node.at("head_size"));
  layer.dtype = dtype_from(node.at("dtype"));
  layer.kv_cache_dtype = optional_string_from(node.at("kv_cache_dtype"));
  boolean("use_mla", layer.use_mla);
  boolean("has_sink", layer.has_sink);
  boolean("use_sparse", layer.use_sparse);
  boolean("use_mm_prefix", layer.use_mm_prefix);
  boolean("use_per_head_quant_scales", layer.use_per_head_quant_scales);
  boolean("has_sliding_window", layer.has_sliding_window);
  if (node.has("num_heads")) layer.num_heads = optional_int_from(node.at("num_heads"));
  if (!node.has("attn_type")) return layer;
  const JsonNode type = node.at("attn_type");
  if (type.is_null() || type.string().empty()) return layer;
  bool plain = false;
  boolean("attn_type_plain", plain);
  layer.attn_type = AttentionTypeArgument{attention_type_from(type), plain};
  return layer;
}

json to_json_value(const VllmError& error) {
  return {{"error", error.type()}, {"text", error.what()}};
}

json outcome_json(const Selection& selection) {
  if (selection.error) return to_json_value(*selection.error);
  return {{"path", selection.path}, {"backend", or_null(selection.backend)}};
}

json logs_json(const Selection& selection) {
  json logs = json::array();
  for (const LogLine& line : selection.logs) logs.push_back({name(line.level), line.text});
  return logs;
}

json candidates_json(const Selection& selection) {
  json candidates = json::array();
  for (const Candidate& one : selection.candidates) {
    candidates.push_back(json::array({one.name, one.reasons}));
  }
  return candidates;
}

}  // namespace attn
