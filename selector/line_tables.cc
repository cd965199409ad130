// Tables of lines: validate*, select*, repr, layouts, block_sizes, helpers, spec_kind,
// build_config.
#include <fmt/core.h>

#include <array>

#include "attn/error.h"
#include "core/composite_description.h"
#include "selector/environment_json.h"
#include "selector/json_values.h"
#include "selector/kernel_facts.h"
#include "selector/table_kinds.h"
#include "selector/vllm_backends.h"

namespace attn {
namespace {

using nlohmann::json;

// What vLLM raises is an answer.
template <class Function>
json value_or_error(const Function& function) {
  try {
    return function();
  } catch (const VllmError& error) {
    return to_json_value(error);
  }
}

SelectorFacts facts_from(Platform platform, const EnvironmentReader& reader, const JsonNode& row) {
  SelectorFacts facts;
  facts.platform = platform;
  facts.capability = capability_from(row.at("capability"));
  facts.environment = reader.read(row.at("env"));
  return facts;
}

DescribedBackend described(const JsonNode& name, const SelectorFacts& facts) {
  if (name.string() == "XPU:FLASH_ATTN_MLA") return xpu_flash_attn_mla(facts);
  const BackendRow* row = find_backend_row(name.string());
  if (row == nullptr) name.fail("a described backend");
  return row->describe(facts);
}

json validate_row(Platform platform, const EnvironmentReader& reader, const JsonNode& row) {
  row.expect_only({"backend", "capability", "config", "env", "reasons"});
  const SelectorFacts facts = facts_from(platform, reader, row);
  const AttentionSelectorConfig config = selector_config_from(row.at("config"));
  const BackendCheck check(described(row.at("backend"), facts));
  return {{"reasons", value_or_error([&]() -> json {
             const Reasons reasons = check.validate(Requirements(config), facts);
             return reason_texts(reasons, check, facts, config);
           })}};
}

std::optional<std::string> requested_from(const JsonNode& node, const BackendRegistry& registry) {
  std::optional<std::string> requested = optional_string_from(node);
  if (requested && !registry.contains(*requested)) node.fail("a backend or null");
  return requested;
}

json select_row(Platform platform, const EnvironmentReader& reader, const JsonNode& row) {
  row.expect_only(
      {"requested", "num_heads", "capability", "config", "env", "outcome", "logs", "candidates"});
  const BackendSelector selector(facts_from(platform, reader, row),
                                 BackendRegistry(RegistryKind::kAttention));
  const SelectionRequest request = {requested_from(row.at("requested"), selector.registry()),
                                    optional_int_from(row.at("num_heads")),
                                    selector_config_from(row.at("config"))};
  const Selection selection = selector.select(request);
  json answer = {{"outcome", outcome_json(selection)}, {"logs", logs_json(selection)}};
  if (platform == Platform::kCuda && !request.backend && !selection.error) {
    answer["candidates"] = candidates_json(selection);
  }
  return answer;
}

json repr_row(const JsonNode& row) {
  row.expect_only({"config", "repr"});
  return {{"repr", to_string(selector_config_from(row.at("config")))}};
}

json layouts_row(const JsonNode& row) {
  row.expect_only({"declared", "layouts"});
  std::vector<std::optional<CacheLayouts>> declared;
  for (const JsonNode& element : row.at("declared").elements()) {
    declared.push_back(element.is_null() ? std::nullopt
                                         : std::optional(cache_layouts_from(element)));
  }
  return {
      {"layouts", value_or_error([&] { return to_json_value(common_cache_layouts(declared)); })}};
}

std::vector<BlockSizes> lists_from(const JsonNode& node) {
  std::vector<BlockSizes> lists;
  for (const JsonNode& element : node.elements()) lists.push_back(block_sizes_from(element));
  return lists;
}

std::vector<BlockSizes> two_lists_from(const JsonNode& node) {
  std::vector<BlockSizes> lists = lists_from(node);
  if (lists.size() != 2) node.fail("two lists");
  return lists;
}

json common_block_size(const JsonNode& row) {
  std::vector<NamedBlockSizes> backends;
  for (BlockSizes& sizes : lists_from(row.at("backends"))) {
    if (backends.size() == 26) row.at("backends").fail("at most 26 lists");
    const std::string name(1, static_cast<char>('A' + static_cast<char>(backends.size())));
    backends.push_back({name, std::move(sizes)});
  }
  const int manager = int_from(row.at("manager_block_size"));
  return value_or_error([&]() -> json { return select_common_block_size(manager, backends); });
}

json composite_blocks(const JsonNode& row) {
  const std::vector<BlockSizes> lists = two_lists_from(row.at("backends"));
  std::vector<int> wanted;
  if (!row.at("kernel_block_sizes").is_null()) {
    for (const JsonNode& size : row.at("kernel_block_sizes").elements()) {
      wanted.push_back(int_from(size));
      if (wanted.back() < 1) size.fail("an integer >= 1");
    }
  }
  const std::array children = {KernelBlocks{.sizes = lists[0]}, KernelBlocks{.sizes = lists[1]}};
  const KernelBlocks blocks = {.sizes = composite_block_sizes(children, wanted),
                               .empty_refuses = true};
  const std::optional<int> block_size = optional_int_from(row.at("block_size"));
  json result = {{"kernel_block_sizes", to_json_value(blocks.sizes)},
                 {"supports_block_size", blocks.support(block_size)}};
  if (block_size) result["preferred"] = preferred_block_size(blocks.sizes, *block_size);
  return result;
}

json block_sizes_result(const JsonNode& row) {
  switch (row.at("op").choice({"supports", "preferred", "common", "intersect", "composite"})) {
    case 0:
      return supports_block_size(block_sizes_from(row.at("sizes")),
                                 optional_int_from(row.at("block_size")));
    case 1: {
      const BlockSizes sizes = block_sizes_from(row.at("sizes"));
      return preferred_block_size(sizes, int_from(row.at("block_size")));
    }
    case 2:
      return common_block_size(row);
    case 3: {
      const std::vector<BlockSizes> lists = two_lists_from(row.at("backends"));
      return to_json_value(intersect_block_sizes(lists[0], lists[1]));
    }
    default:
      return composite_blocks(row);
  }
}

FlashAttnUse use_from(const JsonNode& args) {
  FlashAttnUse use;
  const auto integer = [&](std::string_view key, std::optional<int>& field) {
    if (args.has(key)) field = optional_int_from(args.at(key));
  };
  const auto boolean = [&](std::string_view key, bool& field) {
    if (args.has(key)) field = args.at(key).boolean();
  };
  integer("head_size", use.head_size);
  integer("head_size_v", use.head_size_v);
  integer("kv_cache_block_size", use.block_size);
  boolean("has_sinks", use.has_sinks);
  boolean("requires_alibi", use.requires_alibi);
  boolean("requires_softcap", use.requires_softcap);
  boolean("supports_fa4_hd256", use.hd256);
  return use;
}

json helper_result(const SelectorFacts& facts, const JsonNode& row) {
  const JsonNode args = row.at("args");
  args.expect_only({"head_size", "head_size_v", "has_sinks", "requires_alibi", "requires_softcap",
                    "kv_cache_block_size", "supports_fa4_hd256", "kv_cache_dtype", "prefill",
                    "num_heads", "num_kv_heads"});
  switch (row.at("op").choice({"fa_version", "fa_kv_ok", "trtllm", "trtllm_usable"})) {
    case 0:
      return or_null(flash_attn_version(facts, use_from(args)));
    case 1: {
      const std::optional<CacheDType> dtype = cache_dtype_from(args.at("kv_cache_dtype"));
      if (!dtype) args.at("kv_cache_dtype").fail("a cache dtype");
      return flash_attn_reads_kv(facts, *dtype, use_from(args));
    }
    case 2:
      return trtllm_supported(facts, args.at("prefill").boolean());
    default:
      return trtllm_usable(facts, int_from(args.at("num_heads")),
                           int_from(args.at("num_kv_heads")));
  }
}

json build_config_result(const RunConfig& defaults, const JsonNode& row) {
  row.expect_only({"args", "run", "result"});
  const LayerArguments layer = layer_arguments_from(row.at("args"));
  const RunConfig run = run_config_from(row.at("run"), defaults);
  return value_or_error([&]() -> json {
    const LayerRequest asked = build_layer_request(layer, run);
    return {{"config", to_json_value(asked.request.config)},
            {"backend", or_null(asked.request.backend)},
            {"num_heads", or_null(asked.request.num_heads)},
            {"run_kv_cache_dtype", or_null(asked.run_kv_cache_dtype)}};
  });
}

json spec_kind_result(const JsonNode& row) {
  row.expect_only({"use_mla", "has_sliding_window", "attn_type", "result"});
  return name(cache_group_kind(row.at("use_mla").boolean(), row.at("has_sliding_window").boolean(),
                               row.at("attn_type").string()));
}

}  // namespace

LineKind line_kind(const JsonNode& header) {
  const std::string kind = header.at("table").string();
  const Platform platform = platform_from(header.at("platform"));
  const EnvironmentReader reader(header);
  const auto result = [](auto function) -> LineKind {
    return {{"result"}, [function](const JsonNode& row) -> json {
              return {{"result", function(row)}};
            }};
  };
  if (kind == "validate" || kind.starts_with("validate_")) {
    return {{"reasons"}, [=](const JsonNode& row) { return validate_row(platform, reader, row); }};
  }
  if (kind == "select" || kind.starts_with("select_")) {
    return {{"outcome", "logs", "candidates"},
            [=](const JsonNode& row) { return select_row(platform, reader, row); }};
  }
  if (kind == "repr") return {{"repr"}, repr_row};
  if (kind == "layouts") return {{"layouts"}, layouts_row};
  if (kind == "block_sizes") return result(block_sizes_result);
  if (kind == "helpers") {
    return result(
        [=](const JsonNode& row) { return helper_result(facts_from(platform, reader, row), row); });
  }
  if (kind == "spec_kind") return result(spec_kind_result);
  if (kind == "build_config") {
    const RunConfig defaults = run_config_from(header.at("run_defaults"), RunConfig{});
    return result([=](const JsonNode& row) { return build_config_result(defaults, row); });
  }
  header.at("table").fail("a kind of decision table");
}

}  // namespace attn
