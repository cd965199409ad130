// The table of what composites declare.
#include <fmt/core.h>

#include "attn/backend_check.h"
#include "attn/error.h"
#include "composite/batch_json.h"
#include "composite/composite_attention_backend.h"
#include "composite/scripted_backend.h"
#include "composite/table_kinds.h"
#include "composite/table_policy.h"
#include "core/contains.h"
#include "core/table_values.h"

namespace attn {
namespace {

using nlohmann::json;

// What the header says that every row is asked.
struct Probes {
  std::vector<std::optional<CacheDType>> kv_cache_dtypes;
  std::vector<int> head_sizes;
  std::vector<std::optional<int>> block_sizes;
  std::vector<DeviceCapability> capabilities;
  std::vector<AttentionType> attn_types;
  std::vector<DType> dtypes;
  std::vector<std::string> flags;
  KvCacheSpec spec;
};

constexpr int kPreferredFor[] = {16, 48, 128};
constexpr int kManagerSizes[] = {16, 48, 64, 128};

DeviceCapability some_capability(const JsonNode& node) {
  const std::optional<DeviceCapability> capability = capability_from(node);
  if (!capability) node.fail("[major, minor]");
  return *capability;
}

// Each element of a list as `one` reads it.
template <class Read>
auto list_from(const JsonNode& node, const Read& one) {
  std::vector<decltype(one(node))> list;
  for (const JsonNode& element : node.elements()) list.push_back(one(element));
  return list;
}

Probes probes_from(const JsonNode& header) {
  const JsonNode node = header.at("probes");
  Probes probes;
  probes.kv_cache_dtypes = list_from(node.at("kv_cache_dtypes"), cache_dtype_from);
  probes.head_sizes = list_from(node.at("head_sizes"), int_from);
  probes.block_sizes = list_from(node.at("block_sizes"), optional_int_from);
  probes.capabilities = list_from(node.at("capabilities"), some_capability);
  probes.attn_types = list_from(node.at("attn_types"), attention_type_from);
  probes.dtypes = list_from(node.at("dtypes"), model_dtype_from);
  for (const JsonNode& flag : node.at("flags").elements()) {
    std::vector<std::string_view> names;
    for (const BackendFlag& one : backend_flags()) names.push_back(one.name);
    flag.choice(names);
    probes.flags.push_back(flag.string());
  }
  probes.spec = spec_from(header.at("spec"));
  return probes;
}

json validate(const AttentionBackend& backend, const SelectorFacts& facts, const JsonNode& requests,
              bool on_request_device) {
  json all = json::array();
  for (const JsonNode& node : requests.elements()) {
    constexpr std::string_view kDevice[] = {"device_capability"};
    node.at("attn_type");  // optional elsewhere
    AttentionSelectorConfig config = selector_config_from(node, kDevice);
    config.attn_type.plain = true;
    const DeviceCapability asked = some_capability(node.at("device_capability"));
    SelectorFacts seen = facts;
    if (on_request_device) seen.capability = asked;
    DescribedBackend described = backend.describe(seen.capability);
    described.capability = backend.describe(asked).capability;
    const BackendCheck check(std::move(described));
    all.push_back(reason_texts(check.validate(Requirements(config), seen), check, seen, config));
  }
  return all;
}

json accepted_probes(const Probes& probes, const AttentionBackend& backend,
                     const DescribedBackend& described) {
  json answer = {{"block_sizes", json::array()},  {"head_sizes", json::array()},
                 {"dtypes", json::array()},       {"kv_cache_dtypes", json::array()},
                 {"capabilities", json::array()}, {"attn_types", json::array()},
                 {"flags", json::array()}};
  for (const auto& size : probes.block_sizes) {
    if (described.blocks.support(size)) answer["block_sizes"].push_back(or_null(size));
  }
  for (const int size : probes.head_sizes) {
    if (described.heads.allow(size)) answer["head_sizes"].push_back(size);
  }
  for (const DType dtype : probes.dtypes) {
    if (contains(described.dtypes, dtype)) answer["dtypes"].push_back(model_dtype_name(dtype));
  }
  for (const auto& dtype : probes.kv_cache_dtypes) {
    if (!described.kv.accepted.contains(dtype)) continue;
    answer["kv_cache_dtypes"].push_back(dtype ? json(name(*dtype)) : json(nullptr));
  }
  for (const DeviceCapability capability : probes.capabilities) {
    if (!backend.describe(capability).capability) continue;
    answer["capabilities"].push_back({capability.major, capability.minor});
  }
  for (const AttentionType type : probes.attn_types) {
    if (contains(described.attn_types, type)) answer["attn_types"].push_back(name(type));
  }
  for (const std::string& wanted : probes.flags) {
    for (const BackendFlag& flag : backend_flags()) {
      if (flag.name == wanted && described.*flag.field) answer["flags"].push_back(wanted);
    }
  }
  return answer;
}

json layouts_json(const DescribedBackend& described) {
  return value_or_error([&]() -> json {
    const std::optional<CacheLayouts>& layouts = supported_layouts(described);
    return layouts ? to_json_value(*layouts) : json(nullptr);
  });
}

json changed_fields(const KvCacheSpec& before, const KvCacheSpec& after) {
  json changes = json::object();
  const auto note = [&](const char* field, const auto& old_value, const auto& new_value) {
    if (old_value != new_value) changes[field] = new_value;
  };
  note("block_size", before.block_size, after.block_size);
  note("num_kv_heads", before.num_kv_heads, after.num_kv_heads);
  note("head_size", before.head_size, after.head_size);
  const auto note_optional = [&](const char* field, const std::optional<int>& old_value,
                                 const std::optional<int>& new_value) {
    if (old_value != new_value) changes[field] = or_null(new_value);
  };
  note_optional("num_head_slots", before.num_head_slots, after.num_head_slots);
  note_optional("state_content_bytes", before.state_content_bytes, after.state_content_bytes);
  note_optional("block_stride_alignment", before.block_stride_alignment,
                after.block_stride_alignment);
  return changes;
}

json block_answers(const Probes& probes, const AttentionBackend& backend,
                   const DescribedBackend& described) {
  const BlockSizes with_spec = backend.kernel_block_sizes(probes.spec);
  json answer = {{"kernel_block_sizes", to_json_value(described.blocks.sizes)},
                 {"kernel_block_sizes_with_spec", to_json_value(with_spec)},
                 {"preferred_block_size", json::object()},
                 {"kernel_block_size_for", json::object()}};
  for (const int size : kPreferredFor) {
    answer["preferred_block_size"][std::to_string(size)] = described.blocks.preferred(size);
  }
  for (const int size : kManagerSizes) {
    const NamedBlockSizes alone = {backend.name(), with_spec};
    answer["kernel_block_size_for"][std::to_string(size)] = value_or_error([&]() -> json {
      return select_common_block_size(size, {&alone, 1});
    });
  }
  return answer;
}

json declared(const Probes& probes, const AttentionBackend& backend,
              const std::optional<DeviceCapability>& capability) {
  const DescribedBackend described = backend.describe(capability);
  const ClassName full_name = backend.full_class_name();
  json answer = accepted_probes(probes, backend, described);
  answer.update(block_answers(probes, backend, described));
  answer["full_cls_name"] = {full_name.module, full_name.name};
  answer["name"] = backend.name();
  answer["forward_includes_kv_cache_update"] = described.update_in_forward;
  answer["supports_kv_cache_update_bypass"] = described.update_bypass;
  answer["supported_head_sizes"] = described.heads.declared.value_or(described.heads.only);
  answer["layouts"] = layouts_json(described);
  answer["requires_block_table_width"] = backend.requires_block_table_width();
  answer["spec_changes"] = value_or_error(
      [&] { return changed_fields(probes.spec, backend.customize_spec(probes.spec)); });
  return answer;
}

CompositeOptions options_from(const JsonNode& node) {
  node.expect_only({"head_sizes", "kernel_block_sizes", "device_major", "class", "name", "module"});
  CompositeOptions options;
  if (node.has("head_sizes")) options.head_sizes = list_from(node.at("head_sizes"), int_from);
  if (node.has("kernel_block_sizes")) {
    options.kernel_block_sizes = list_from(node.at("kernel_block_sizes"), int_from);
  }
  if (node.has("device_major")) options.device_major = optional_int_from(node.at("device_major"));
  if (node.has("class")) options.class_name = node.at("class").string();
  if (node.has("name")) options.backend_name = node.at("name").string();
  if (node.has("module")) options.module = node.at("module").string();
  return options;
}

json capability_answer(const Probes& probes, const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "general", "causal", "policy", "options", "layers",
                   "requests", "expect"});
  const auto child = [&](const char* role) {
    return scripted_backend(child_description_from(row.at(role)), role, nullptr);
  };
  const AttentionBackendPtr general = child("general");
  const AttentionBackendPtr causal = child("causal");
  const RoutingPolicyPtr policy = table_policy_from(row.at("policy")).policy;
  const CompositeOptions options = options_from(row.at("options"));
  const BuilderArguments arguments = {probes.spec, {}, layers_from(row.at("layers")), {}};
  return value_or_error([&]() -> json {
    const AttentionBackendPtr backend =
        compose_as(Conduct::kVllm, {general, causal}, policy, options);
    const auto builder = backend->make_builder(arguments);
    json answer = declared(probes, *backend, {});
    answer["is_general_child"] = backend == general;
    answer["cudagraph_support"] = name(backend->cudagraph_support(arguments));
    answer["varlen_cudagraph_max_query_len"] =
        or_null(backend->varlen_cudagraph_max_query_len(arguments));
    answer["supports_update_block_table"] = builder->supports_update_block_table();
    answer["supports_draft_decode_metadata_update"] =
        builder->supports_draft_decode_metadata_update();
    answer["validate"] = validate(*backend, {}, row.at("requests"), true);
    return answer;
  });
}

json real_answer(const Probes& probes, const VllmBackends& backends, const JsonNode& row) {
  row.expect_only(
      {"id", "kind", "fixed", "backend", "capability", "flash_attn_version", "requests", "expect"});
  const DeviceCapability device = some_capability(row.at("capability"));
  const std::optional<VllmBackend> known =
      backends ? backends(row.at("backend").string(), device,
                          optional_int_from(row.at("flash_attn_version")))
               : std::nullopt;
  if (!known) row.at("backend").fail("a backend that this program describes");
  json answer = declared(probes, *known->backend, device);
  // Builders of described backends are not part of selection; a composite's never update in place.
  answer["supports_update_block_table"] = false;
  answer["supports_draft_decode_metadata_update"] = false;
  answer["validate"] = validate(*known->backend, known->facts, row.at("requests"), false);
  return answer;
}

}  // namespace

LineKind capabilities_table(const JsonNode& header, const VllmBackends& backends) {
  return {{"expect"}, [probes = probes_from(header), backends](const JsonNode& row) -> json {
            const bool real = row.at("kind").choice({"capability", "real_composite"}) == 1;
            return {{"expect",
                     real ? real_answer(probes, backends, row) : capability_answer(probes, row)}};
          }};
}

}  // namespace attn
