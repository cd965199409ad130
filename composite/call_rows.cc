#include "composite/call_rows.h"

#include <fmt/core.h>

#include <exception>
#include <utility>

#include "attn/error.h"
#include "composite/batch_json.h"
#include "composite/composite_attention_backend.h"
#include "composite/composite_builder.h"
#include "composite/table_policy.h"
#include "core/table_values.h"

namespace attn {
namespace {

using nlohmann::json;
using Batch = CommonAttentionMetadata;

constexpr std::string_view kBuilderSteps[] = {"build",
                                              "build_for_cudagraph_capture",
                                              "build_for_drafting",
                                              "update_block_table",
                                              "update_draft_decode_metadata",
                                              "get_workspace_buffer",
                                              "set_workspace_buffer"};

// A builder, and what its steps refer to.
struct BuilderScene {
  const ScriptedPair& pair;
  const TablePolicy& policy;
  const std::vector<JsonNode>& batches;
  AttentionMetadataBuilder& builder;

  Batch batch(const JsonNode& step) const {
    const JsonNode index = step.at("batch");
    const auto at = static_cast<std::size_t>(index.integer(0));
    if (at >= batches.size()) index.fail("an index of batches");
    return batch_from(batches[at]);
  }
};

json built_json(const MetadataPtr& metadata, json tag, const Batch& batch) {
  const auto& leaf = dynamic_cast<const ScriptedMetadata&>(leaf_of(*metadata));
  return {
      {"built_by", leaf.role()}, {"variant", std::move(tag)}, {"same_batch", leaf.same_as(batch)}};
}

int child_of(const MetadataPtr& metadata) { return route_of(*metadata).front().route.child; }

json build_step(const BuilderScene& scene, const JsonNode& step) {
  step.expect_only({"op", "batch", "common_prefix_len", "fast_build"});
  const Batch batch = scene.batch(step);
  const bool fast = step.has("fast_build") && step.at("fast_build").boolean();
  const MetadataPtr metadata =
      scene.builder.build(int_from(step.at("common_prefix_len")), batch, fast);
  return built_json(metadata, scene.policy.tag(child_of(metadata)), batch);
}

json capture_step(const BuilderScene& scene, const JsonNode& step) {
  step.expect_only({"op", "batch"});
  const Batch batch = scene.batch(step);
  const MetadataPtr metadata = scene.builder.build_for_cudagraph_capture(batch);
  return built_json(metadata, child_of(metadata), batch);
}

json drafting_step(const BuilderScene& scene, const JsonNode& step) {
  step.expect_only({"op", "batch", "draft_index"});
  const Batch batch = scene.batch(step);
  const MetadataPtr metadata =
      scene.builder.build_for_drafting(batch, int_from(step.at("draft_index")));
  return built_json(metadata, scene.policy.tag(child_of(metadata)), batch);
}

json update_step(const BuilderScene& scene, const JsonNode& step, bool block_table) {
  step.expect_only({"op", "batch"});
  const Batch batch = block_table ? scene.batch(step) : Batch{};
  const ScriptedMetadata some(scene.builder.backend(), "", batch);
  if (block_table) {
    scene.builder.update_block_table(some, batch.block_table, batch.slot_mapping);
  } else {
    scene.builder.update_draft_decode_metadata(some);
  }
  return json::object();
}

json workspace_step(const BuilderScene& scene, const JsonNode& step, bool give) {
  step.expect_only({"op", "buffer"});
  if (give) {
    scene.builder.set_workspace(std::make_shared<NamedWorkspace>(step.at("buffer").string()));
    return json::object();
  }
  const WorkspacePtr buffer = scene.builder.workspace();
  const auto* named = dynamic_cast<const NamedWorkspace*>(buffer.get());
  return {{"buffer", named == nullptr ? json(nullptr) : json(named->name)}};
}

json builder_step(const BuilderScene& scene, const JsonNode& step) {
  const std::size_t op = step.at("op").choice(kBuilderSteps);
  switch (op) {
    case 0:
      return build_step(scene, step);
    case 1:
      return capture_step(scene, step);
    case 2:
      return drafting_step(scene, step);
    case 3:
    case 4:
      return update_step(scene, step, op == 3);
    default:
      return workspace_step(scene, step, op == 6);
  }
}

// The answer of a step with the calls that it made.
template <class Step>
json with_calls(const ScriptedPair& pair, const Step& step) {
  json answer = value_or_error(step);
  answer["calls"] = pair.log->take();
  return answer;
}

std::optional<int> block_table_width(const JsonNode& kwargs) {
  kwargs.expect_only({"block_table_width"});
  if (!kwargs.has("block_table_width")) return std::nullopt;
  return int_from(kwargs.at("block_table_width"));
}

// What is in `cause` of an error: the type of the one behind it.
json cause_of(const VllmError& error) {
  try {
    std::rethrow_if_nested(error);
  } catch (const VllmError& original) {
    return original.type();
  }
  return nullptr;
}

ImplArguments impl_arguments(const JsonNode& args, const JsonNode& kwargs) {
  const std::vector<JsonNode> positional = args.elements();
  if (positional.size() != 4) args.fail("[num_heads, head_size, scale, num_kv_heads]");
  ImplArguments arguments;
  arguments.num_heads = int_from(positional[0]);
  arguments.head_size = int_from(positional[1]);
  arguments.scale = positional[2].number();
  arguments.num_kv_heads = int_from(positional[3]);
  kwargs.expect_only({"kv_cache_dtype", "sinks"});
  if (kwargs.has("kv_cache_dtype")) {
    arguments.kv_cache_dtype =
        cache_dtype_from(kwargs.at("kv_cache_dtype")).value_or(CacheDType::kAuto);
  }
  if (kwargs.has("sinks")) {
    kwargs.at("sinks").choice({"sinks"});
    arguments.sinks = {0.0F};
  }
  return arguments;
}

// Python tells arguments that were given from those that were not; ours have all of them.
json calls_with_given(json calls, const JsonNode& kwargs) {
  for (json& call : calls) {
    if (!call.contains("kwargs")) continue;
    json given = json::object();
    for (const auto& [key, value] : call["kwargs"].items()) {
      if (kwargs.has(key)) given[key] = value;
    }
    call["kwargs"] = std::move(given);
  }
  return calls;
}

json attributes_json(const ImplTraits& traits) {
  json attributes = {{"supports_quant_query_input", traits.supports_quant_query_input},
                     {"supports_pcp", traits.supports_pcp},
                     {"supports_dcp", traits.supports_dcp},
                     {"can_return_lse_for_decode", traits.can_return_lse_for_decode},
                     {"lse_base_on_e", traits.lse_base_on_e},
                     {"need_to_return_lse_for_decode", traits.need_to_return_lse_for_decode},
                     {"supports_mtp_with_cp_non_trivial_interleave_size",
                      traits.supports_mtp_with_cp_non_trivial_interleave_size}};
  if (traits.num_heads) attributes["num_heads"] = *traits.num_heads;
  if (traits.num_kv_heads) attributes["num_kv_heads"] = *traits.num_kv_heads;
  if (traits.head_size) attributes["head_size"] = *traits.head_size;
  if (traits.scale) attributes["scale"] = *traits.scale;
  if (traits.kv_cache_dtype) attributes["kv_cache_dtype"] = name(*traits.kv_cache_dtype);
  return attributes;
}

json fused_json(const AttentionImpl& impl) {
  return {{"output_quant", impl.fused_output_quant_supported()},
          {"qk_norm_rope", impl.fused_update_supported(FusedUpdate::kQkNormRope)},
          {"qk_norm_mrope", impl.fused_update_supported(FusedUpdate::kQkNormMrope)},
          {"rope", impl.fused_update_supported(FusedUpdate::kRope)}};
}

struct ImplScene {
  const ScriptedPair& pair;
  const AttentionBackendPtr& backend;
  AttentionImpl& impl;
};

// Metadata of a forward step: none and without a tag are one thing, a child's own.
MetadataPtr step_metadata(const JsonNode& node, const AttentionBackendPtr& composite) {
  const auto own = std::make_shared<ScriptedMetadata>(*composite, "", Batch{});
  if (node.is_null()) return own;
  node.expect_only({"variant"});
  if (!node.has("variant")) return own;
  return std::make_shared<CompositeMetadata>(composite,
                                             Route{variant_from(node.at("variant")), "", {}}, own);
}

json forward_step(const ImplScene& scene, const JsonNode& step) {
  step.expect_only({"op", "metadata", "scales"});
  ForwardArguments arguments;
  if (step.has("scales")) {
    const std::vector<std::string> scales = strings_from(step.at("scales"));
    if (scales.size() > 2) step.at("scales").fail("at most two scales");
    if (!scales.empty()) arguments.output_scale = named_scale(scales[0]);
    if (scales.size() > 1) arguments.output_block_scale = named_scale(scales[1]);
  }
  scene.impl.forward(*step_metadata(step.at("metadata"), scene.backend), arguments);
  json calls = scene.pair.log->take();
  const json output = "output-of-" + calls.at(0).at("child").get<std::string>();
  for (json& call : calls) scene.pair.log->add(std::move(call));
  return {{"output", output}};
}

json impl_step(const ImplScene& scene, const JsonNode& step) {
  AttentionImpl& impl = scene.impl;
  const std::size_t op =
      step.at("op").choice({"forward", "do_kv_cache_update", "process_weights_after_loading",
                            "prepare_for_batch", "do_qk_norm_rope_kvcache_update",
                            "do_qk_norm_mrope_kvcache_update", "do_rope_and_kv_cache_update"});
  if (op == 0) return forward_step(scene, step);
  step.expect_only({"op"});
  if (op == 1) impl.do_kv_cache_update({});
  if (op == 2) impl.process_weights_after_loading(DType::kBF16);
  if (op == 3) impl.prepare_for_batch(ScriptedMetadata(impl.backend(), "", Batch{}));
  if (op == 4) impl.do_fused_update(FusedUpdate::kQkNormRope, {});
  if (op == 5) impl.do_fused_update(FusedUpdate::kQkNormMrope, {});
  if (op == 6) impl.do_fused_update(FusedUpdate::kRope, {});
  return json::object();
}

json variant_name(const AttentionImpl& impl, const AttentionBackendPtr& child) {
  const AttentionImpl* found = find_attention_impl_variant(impl, *child);
  return found == nullptr ? json(nullptr) : json(found->backend().name() + "Impl");
}

}  // namespace

ScriptedPair::ScriptedPair(const JsonNode& row)
    : general(scripted_backend(child_description_from(row.at("general")), "general", log)),
      causal(scripted_backend(child_description_from(row.at("causal")), "causal", log)) {}

AttentionBackendPtr ScriptedPair::composed(const RoutingPolicyPtr& policy) const {
  AttentionBackendPtr backend =
      compose_as(Conduct::kVllm, {general, causal}, policy, CompositeOptions{});
  if (backend == general) throw Error("general and causal are of one class, which is no composite");
  return backend;
}

json builder_answer(const KvCacheSpec& spec, const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "general", "causal", "policy", "layers", "layer_names",
                   "builder_kwargs", "batches", "steps", "expect"});
  const ScriptedPair pair(row);
  const TablePolicy policy = table_policy_from(row.at("policy"));
  const BuilderArguments arguments = {spec, strings_from(row.at("layer_names")),
                                      layers_from(row.at("layers")),
                                      block_table_width(row.at("builder_kwargs"))};
  const std::vector<JsonNode> batches = row.at("batches").elements();
  for (const JsonNode& batch : batches) batch_from(batch);  // also those that no step uses

  AttentionBackendPtr backend;
  std::unique_ptr<AttentionMetadataBuilder> builder;
  json failed = with_calls(pair, [&] {
    backend = pair.composed(policy.policy);
    builder = backend->make_builder(arguments);
    return json::object();
  });
  if (!builder) return failed;
  json answer = {{"init_calls", failed["calls"]},
                 {"requires_block_table_width", backend->requires_block_table_width()},
                 {"reorder_batch_threshold", or_null(builder->reorder_batch_threshold())},
                 {"steps", json::array()}};
  const BuilderScene scene = {pair, policy, batches, *builder};
  for (const JsonNode& step : row.at("steps").elements()) {
    answer["steps"].push_back(with_calls(pair, [&] { return builder_step(scene, step); }));
  }
  return answer;
}

json impl_answer(const JsonNode& row) {
  row.expect_only(
      {"id", "kind", "fixed", "general", "causal", "args", "kwargs", "steps", "expect"});
  const ScriptedPair pair(row);
  const JsonNode kwargs = row.at("kwargs");
  const ImplArguments arguments = impl_arguments(row.at("args"), kwargs);
  AttentionBackendPtr backend;
  std::unique_ptr<AttentionImpl> impl;
  try {
    backend = pair.composed(constant_policy(0, 0));
    impl = backend->make_impl(arguments);
  } catch (const VllmError& error) {
    json answer = error_json(error);
    answer["cause"] = cause_of(error);
    answer["calls"] = calls_with_given(pair.log->take(), kwargs);
    return answer;
  }
  json answer = {
      {"init_calls", calls_with_given(pair.log->take(), kwargs)},
      {"attributes", attributes_json(impl->traits())},
      {"num_variants", impl->variants().size()},
      {"find_variant", {variant_name(*impl, pair.general), variant_name(*impl, pair.causal)}},
      {"fused", fused_json(*impl)},
      {"steps", json::array()}};
  const ImplScene scene = {pair, backend, *impl};
  for (const JsonNode& step : row.at("steps").elements()) {
    answer["steps"].push_back(with_calls(pair, [&] { return impl_step(scene, step); }));
  }
  return answer;
}

}  // namespace attn
