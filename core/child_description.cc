#include "core/child_description.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "attn/error.h"
#include "core/described_rules.h"
#include "core/table_values.h"

namespace attn {
namespace {

int int_at_least(const JsonNode& node, int min) {
  node.integer(min);
  return int_from(node);
}

std::string filled_string(const JsonNode& node) {
  std::string text = node.string();
  if (text.empty()) node.fail("a name");
  return text;
}

std::optional<DeviceCapability> optional_capability(const JsonNode& node, std::string_view key) {
  return node.has(key) ? capability_from(node.at(key)) : std::nullopt;
}

void read(const JsonNode& node, std::string_view key, bool& field) {
  if (node.has(key)) field = node.at(key).boolean();
}

void read(const JsonNode& node, std::string_view key, std::optional<int>& field) {
  if (node.has(key)) field = optional_int_from(node.at(key));
}

using D = DescribedBackend;
constexpr BackendFlag kFlags[] = {
    {"is_mla", &D::mla},
    {"is_sparse", &D::sparse},
    {"is_ssm", &D::ssm},
    {"supports_sink", &D::sink},
    {"supports_alibi_sqrt", &D::alibi_sqrt},
    {"supports_mm_prefix", &D::mm_prefix},
    {"supports_per_head_quant_scales", &D::per_head_quant_scales},
    {"supports_sliding_window", &D::sliding_window},
    {"supports_rswa", &D::rswa},
    {"supports_non_causal", &D::non_causal},
    {"supports_batch_invariance", &D::batch_invariance},
    {"supports_kv_connector", &D::kv_connector},
    {"supports_device_cpu_query_lens_mismatch", &D::query_lens_mismatch},
    {"supports_pcp", &D::pcp},
    {"supports_dcp", &D::dcp},
    {"supports_non_causal_dcp", &D::non_causal_dcp}};

void read_flags(const JsonNode& node, ChildDescription& child) {
  DescribedBackend& backend = child.backend;
  const auto given = node.has("flags") ? std::optional(node.at("flags")) : std::nullopt;
  if (given) {
    for (const auto& [name, value] : given->members()) {
      const auto* const flag =
          std::find_if(std::begin(kFlags), std::end(kFlags),
                       [&wanted = name](const BackendFlag& one) { return one.name == wanted; });
      if (flag == std::end(kFlags)) value.fail("a method of a backend as key");
      backend.*flag->field = value.boolean();
    }
  }
  // Answers of methods that ask others, where they are not replaced.
  const auto derive = [&](std::string_view name, bool& field, bool value) {
    if (!given || !given->has(name)) field = value;
  };
  const ImplDescription& impl = child.impl;
  derive("supports_device_cpu_query_lens_mismatch", backend.query_lens_mismatch, !backend.ssm);
  derive("supports_pcp", backend.pcp, !impl.not_implemented && impl.traits.supports_pcp);
  derive("supports_dcp", backend.dcp, !impl.not_implemented && impl.traits.supports_dcp);
  derive("supports_non_causal_dcp", backend.non_causal_dcp,
         child.builder.supports_non_causal_multi_token_dcp);
}

HeadSizes heads_from(const JsonNode& node) {
  HeadSizes heads;
  if (node.has("head_sizes")) {
    for (const JsonNode& size : node.at("head_sizes").elements()) {
      heads.only.push_back(int_at_least(size, 1));
    }
  }
  if (!node.has("head_rule") || node.at("head_rule").is_null()) return heads;
  const JsonNode rule = node.at("head_rule");
  rule.expect_only({"min", "max", "multiple_of"});
  heads.declared = std::exchange(heads.only, {});
  if (rule.has("min")) heads.min = int_from(rule.at("min"));
  if (rule.has("max")) heads.max = int_from(rule.at("max"));
  if (rule.has("multiple_of")) heads.multiple_of = int_at_least(rule.at("multiple_of"), 1);
  return heads;
}

void read_lists(const JsonNode& node, DescribedBackend& backend) {
  if (node.has("dtypes")) {
    backend.dtypes.clear();
    for (const JsonNode& one : node.at("dtypes").elements()) {
      backend.dtypes.push_back(model_dtype_from(one));
    }
  }
  if (node.has("kv_cache_dtypes")) {
    KvDTypes kv = {};
    kv.declared.clear();
    kv.accepted = CacheDTypeSet().with(std::nullopt);
    for (const JsonNode& one : node.at("kv_cache_dtypes").elements()) {
      const std::optional<CacheDType> dtype = cache_dtype_from(one);
      if (!dtype) one.fail("a cache dtype");
      kv.declared.push_back(*dtype);
      kv.accepted = kv.accepted.with(*dtype);
    }
    if (kv.declared.empty()) kv.accepted = CacheDTypeSet::all();
    backend.kv = std::move(kv);
  }
  if (node.has("attn_types")) {
    backend.attn_types.clear();
    for (const JsonNode& one : node.at("attn_types").elements()) {
      backend.attn_types.push_back(attention_type_from(one));
    }
  }
  if (node.has("layouts") && !node.at("layouts").is_null()) {
    backend.layouts = cache_layouts_from(node.at("layouts"));
  }
}

BuilderDescription builder_from(const JsonNode& node) {
  node.expect_only({"cudagraph_support", "requires_block_table_width",
                    "supports_update_block_table", "supports_draft_decode_metadata_update",
                    "supports_non_causal_multi_token_dcp", "varlen_bound",
                    "reorder_batch_threshold", "own_capture", "own_drafting", "has_get_workspace",
                    "has_set_workspace", "build_returns_none"});
  BuilderDescription builder;
  if (node.has("cudagraph_support")) {
    builder.cudagraph_support = graph_support_from(node.at("cudagraph_support"));
  }
  read(node, "varlen_bound", builder.varlen_bound);
  read(node, "reorder_batch_threshold", builder.reorder_batch_threshold);
  read(node, "requires_block_table_width", builder.requires_block_table_width);
  read(node, "supports_update_block_table", builder.supports_update_block_table);
  read(node, "supports_draft_decode_metadata_update",
       builder.supports_draft_decode_metadata_update);
  read(node, "supports_non_causal_multi_token_dcp", builder.supports_non_causal_multi_token_dcp);
  read(node, "own_capture", builder.own_capture);
  read(node, "own_drafting", builder.own_drafting);
  read(node, "has_get_workspace", builder.has_get_workspace);
  read(node, "has_set_workspace", builder.has_set_workspace);
  read(node, "build_returns_none", builder.build_returns_none);
  return builder;
}

void read_attributes(const JsonNode& node, ImplTraits& traits) {
  node.expect_only({"num_heads", "num_kv_heads", "head_size", "scale", "kv_cache_dtype",
                    "need_to_return_lse_for_decode"});
  read(node, "num_heads", traits.num_heads);
  read(node, "num_kv_heads", traits.num_kv_heads);
  read(node, "head_size", traits.head_size);
  if (node.has("scale")) traits.scale = node.at("scale").number();
  if (node.has("kv_cache_dtype")) {
    traits.kv_cache_dtype = cache_dtype_from(node.at("kv_cache_dtype"));
  }
  read(node, "need_to_return_lse_for_decode", traits.need_to_return_lse_for_decode);
}

ImplDescription impl_from(const JsonNode& node) {
  node.expect_only(
      {"supports_pcp", "supports_dcp", "supports_quant_query_input", "can_return_lse_for_decode",
       "need_to_return_lse_for_decode", "supports_mtp_with_cp_non_trivial_interleave_size",
       "lse_base_on_e", "attributes", "raises", "not_implemented", "has_kv_cache_update",
       "fused_output_quant", "fused_qk_norm_rope", "fused_qk_norm_mrope", "fused_rope"});
  ImplDescription impl;
  ImplTraits& traits = impl.traits;
  read(node, "supports_pcp", traits.supports_pcp);
  read(node, "supports_dcp", traits.supports_dcp);
  read(node, "supports_quant_query_input", traits.supports_quant_query_input);
  read(node, "can_return_lse_for_decode", traits.can_return_lse_for_decode);
  read(node, "need_to_return_lse_for_decode", traits.need_to_return_lse_for_decode);
  read(node, "supports_mtp_with_cp_non_trivial_interleave_size",
       traits.supports_mtp_with_cp_non_trivial_interleave_size);
  read(node, "lse_base_on_e", traits.lse_base_on_e);
  if (node.has("attributes")) read_attributes(node.at("attributes"), traits);
  if (node.has("raises")) {
    const JsonNode raises = node.at("raises");
    raises.expect_only({"type", "text"});
    impl.raises.emplace(raises.at("type").string(), raises.at("text").string());
  }
  read(node, "not_implemented", impl.not_implemented);
  read(node, "has_kv_cache_update", impl.has_kv_cache_update);
  read(node, "fused_output_quant", impl.fused_output_quant);
  read(node, "fused_qk_norm_rope", impl.fused_qk_norm_rope);
  read(node, "fused_qk_norm_mrope", impl.fused_qk_norm_mrope);
  read(node, "fused_rope", impl.fused_rope);
  return impl;
}

template <auto field>
void set(KvCacheSpec& spec, int value) {
  spec.*field = value;
}
using Spec = KvCacheSpec;
constexpr std::pair<std::string_view, void (*)(KvCacheSpec&, int)> kSpecFields[] = {
    {"block_size", set<&Spec::block_size>},
    {"num_kv_heads", set<&Spec::num_kv_heads>},
    {"head_size", set<&Spec::head_size>},
    {"num_head_slots", set<&Spec::num_head_slots>},
    {"state_content_bytes", set<&Spec::state_content_bytes>},
    {"block_stride_alignment", set<&Spec::block_stride_alignment>}};

std::map<std::string, int> spec_changes_from(const JsonNode& node) {
  std::vector<std::string_view> known;
  for (const auto& [name, set_field] : kSpecFields) known.push_back(name);
  node.expect_only(known);
  std::map<std::string, int> changes;
  for (const auto& [name, value] : node.members()) changes[name] = int_at_least(value, 1);
  return changes;
}

void read_blocks(const JsonNode& node, ChildDescription& child) {
  KernelBlocks& blocks = child.backend.blocks;
  if (node.has("kernel_block_sizes")) {
    blocks.sizes = block_sizes_from(node.at("kernel_block_sizes"));
  }
  if (node.has("block_rule") && !node.at("block_rule").is_null()) {
    blocks.multiples_only = int_at_least(node.at("block_rule"), 1);
  }
  child.kernel_block_sizes_with_spec =
      node.has("kernel_block_sizes_with_spec")
          ? block_sizes_from(node.at("kernel_block_sizes_with_spec"))
          : blocks.sizes;
}

void expect_known(const JsonNode& node, std::span<const std::string_view> further_keys) {
  std::vector<std::string_view> known = {"name",
                                         "module",
                                         "class",
                                         "dtypes",
                                         "kv_cache_dtypes",
                                         "head_sizes",
                                         "attn_types",
                                         "head_rule",
                                         "kernel_block_sizes",
                                         "kernel_block_sizes_with_spec",
                                         "block_rule",
                                         "min_capability",
                                         "max_capability",
                                         "forward_includes_kv_cache_update",
                                         "supports_kv_cache_update_bypass",
                                         "flags",
                                         "combination_rules",
                                         "spec_changes",
                                         "layouts",
                                         "builder",
                                         "impl"};
  known.insert(known.end(), further_keys.begin(), further_keys.end());
  node.expect_only(known);
}

}  // namespace

std::span<const BackendFlag> backend_flags() { return kFlags; }

ChildDescription child_description_from(const JsonNode& node,
                                        std::span<const std::string_view> further_keys) {
  expect_known(node, further_keys);
  ChildDescription child;
  child.name = filled_string(node.at("name"));
  child.module = filled_string(node.at("module"));
  child.class_name = filled_string(node.at("class"));
  if (node.has("builder")) child.builder = builder_from(node.at("builder"));
  if (node.has("impl")) child.impl = impl_from(node.at("impl"));

  DescribedBackend& backend = child.backend;
  backend.name = child.name;
  backend.heads = heads_from(node);
  read_lists(node, backend);
  read_blocks(node, child);
  child.min_capability = optional_capability(node, "min_capability");
  child.max_capability = optional_capability(node, "max_capability");
  read(node, "forward_includes_kv_cache_update", backend.update_in_forward);
  read(node, "supports_kv_cache_update_bypass", backend.update_bypass);
  if (node.has("combination_rules")) {
    backend.combination = combination_rules_from(node.at("combination_rules"));
  }
  if (node.has("spec_changes")) child.spec_changes = spec_changes_from(node.at("spec_changes"));
  read_flags(node, child);
  backend.has_impl = !child.impl.not_implemented;
  backend.decode_lse = child.impl.traits.can_return_lse_for_decode;
  backend.lse_base_e = child.impl.traits.lse_base_on_e;
  backend.graph = child.builder.cudagraph_support;
  backend.reorder_batch_threshold = child.builder.reorder_batch_threshold;
  backend.update_block_table = child.builder.supports_update_block_table;
  return child;
}

DescribedBackend described_on(const ChildDescription& child,
                              const std::optional<DeviceCapability>& capability) {
  DescribedBackend backend = child.backend;
  if (capability && child.min_capability && *capability < *child.min_capability) {
    backend.capability = false;
  }
  if (capability && child.max_capability && *capability > *child.max_capability) {
    backend.capability = false;
  }
  return backend;
}

KvCacheSpec customized(const ChildDescription& child, KvCacheSpec spec) {
  for (const auto& [name, set_field] : kSpecFields) {
    const auto change = child.spec_changes.find(std::string(name));
    if (change != child.spec_changes.end()) set_field(spec, change->second);
  }
  return spec;
}

GraphSupport graph_support_from(const JsonNode& node) {
  const std::optional<GraphSupport> support = graph_support_from_name(node.string());
  if (!support) node.fail("NEVER, UNIFORM_SINGLE_TOKEN_DECODE, UNIFORM_BATCH or ALWAYS");
  return *support;
}

}  // namespace attn
