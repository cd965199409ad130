#include "selector/json_values.h"

#include "attn/error.h"

namespace attn {

using nlohmann::json;

Platform platform_from(const JsonNode& node) {
  const std::optional<Platform> platform = platform_from_name(node.string());
  if (!platform) node.fail("cuda, rocm, xpu or cpu");
  return *platform;
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
  layer.dtype = model_dtype_from(node.at("dtype"));
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
