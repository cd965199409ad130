// Rows of the table `metadata` about groups of layers: block sizes, layouts, builders, graphs.
#include "attn/block_sizes.h"
#include "attn/builder_group.h"
#include "attn/graph_mode.h"
#include "attn/layout_resolution.h"
#include "composite/batch_json.h"
#include "composite/table_kinds.h"
#include "core/child_description.h"
#include "core/table_values.h"

namespace attn {
namespace {

using nlohmann::json;

json common_block_size_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "backends", "kv_manager_block_size", "expect"});
  std::vector<NamedBlockSizes> backends;
  for (const JsonNode& element : row.at("backends").elements()) {
    const std::vector<JsonNode> pair = element.elements();
    if (pair.size() != 2) element.fail("[name, block sizes]");
    backends.push_back({pair[0].string(), block_sizes_from(pair[1])});
  }
  const int manager = int_from(row.at("kv_manager_block_size"));
  return value_or_error([&]() -> json { return select_common_block_size(manager, backends); });
}

std::vector<CacheLayouts> layout_lists_from(const JsonNode& node) {
  std::vector<CacheLayouts> lists;
  for (const JsonNode& element : node.elements()) lists.push_back(cache_layouts_from(element));
  return lists;
}

json supported_layouts_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "declared", "expect"});
  std::vector<std::optional<CacheLayouts>> declared;
  for (const JsonNode& element : row.at("declared").elements()) {
    declared.push_back(element.is_null() ? std::nullopt
                                         : std::optional(cache_layouts_from(element)));
  }
  return value_or_error([&] { return to_json_value(common_cache_layouts(declared)); });
}

json layout_properties_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "expect"});
  json properties = json::object();
  for (int i = 0; i < kNumCacheLayouts; ++i) {
    const auto layout = static_cast<CacheLayout>(i);
    properties[std::string(name(layout))] = {{"stride_order", stride_order(layout)},
                                             {"layer_view_order", layer_view_order(layout)},
                                             {"is_layer_compact", is_layer_compact(layout)},
                                             {"is_block_contiguous", is_block_contiguous(layout)},
                                             {"is_block_compact", is_block_compact(layout)},
                                             {"is_block_outermost", is_block_outermost(layout)}};
  }
  return properties;
}

json kernel_block_table_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "block_size", "kernel_block_size", "kernel_block_stride",
                   "block_table", "expect"});
  const BlockTable table = block_table_from(row.at("block_table"));
  const int block_size = int_from(row.at("block_size"));
  const int kernel_block_size = int_from(row.at("kernel_block_size"));
  if (kernel_block_size > 0) {
    expect_answer(row.at("block_size"), static_cast<std::int64_t>(table.entries.size()),
                  block_size / kernel_block_size);
  }
  return to_json_value(kernel_block_table(table, block_size, kernel_block_size,
                                          int_from(row.at("kernel_block_stride"))));
}

json reorder_threshold_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "reorder_batch_threshold", "supports_spec_as_decode",
                   "supports_dcp_with_varlen", "num_speculative_tokens", "has_speculative_config",
                   "parallel_drafting", "use_v2_model_runner", "decode_context_parallel_size",
                   "expect"});
  const ReorderRequest request = {
      .wanted = optional_int_from(row.at("reorder_batch_threshold")),
      .supports_spec_as_decode = row.at("supports_spec_as_decode").boolean(),
      .supports_dcp_with_varlen = row.at("supports_dcp_with_varlen").boolean(),
      .speculative = {.configured = row.at("has_speculative_config").boolean(),
                      .num_tokens = optional_int_from(row.at("num_speculative_tokens")),
                      .parallel_drafting = row.at("parallel_drafting").boolean()},
      .use_v2_model_runner = row.at("use_v2_model_runner").boolean(),
      .decode_context_parallel_size = int_from(row.at("decode_context_parallel_size"))};
  return {{"threshold", or_null(reorder_threshold(request))},
          {"max_decode_query_len",
           max_decode_query_len(request.speculative, request.use_v2_model_runner)}};
}

// Caches in float16 whose values are as wide as their keys.
CachePages pages_from(const JsonNode& node) {
  node.expect_only({"block_size", "num_kv_heads", "head_size", "dcp_sharded"});
  constexpr std::int64_t kBytesOfKeyAndValue = 2 * 2;
  CachePages pages;
  pages.num_heads = int_from(node.at("num_kv_heads"));
  pages.num_states = int_from(node.at("block_size"));
  const std::int64_t head_size = int_from(node.at("head_size"));
  for (const std::int64_t factor : {pages.num_heads, pages.num_states, head_size}) {
    if (factor < 1 || factor > (1 << 20)) node.fail("sizes in [1, 2^20]");
  }
  pages.page_bytes = pages.num_heads * pages.num_states * head_size * kBytesOfKeyAndValue;
  pages.dcp_sharded = node.at("dcp_sharded").boolean();
  return pages;
}

json resolve_layout_row(const JsonNode& row) {
  row.expect_only(
      {"id", "kind", "fixed", "already", "supported", "specs", "requested", "connector", "expect"});
  const std::vector<CacheLayouts> supported = layout_lists_from(row.at("supported"));
  std::vector<CachePages> pages;
  for (const JsonNode& spec : row.at("specs").elements()) pages.push_back(pages_from(spec));
  LayoutRequest request;
  if (!row.at("already").is_null()) {
    request.recorded = cache_layout_from_name(row.at("already").string());
    if (!request.recorded) row.at("already").fail("a KV cache layout such as LBNHC");
  }
  request.supported = supported;
  request.pages = pages;
  request.requested = optional_string_from(row.at("requested"));
  request.connector = optional_string_from(row.at("connector"));
  return value_or_error([&]() -> json { return name(resolve_kv_cache_layout(request).layout); });
}

json plan_json(const BuilderGroup& group, const BuilderPlan& plan) {
  json arguments = json::object();
  if (plan.block_table_width) arguments["block_table_width"] = *plan.block_table_width;
  return {{"builder_kwargs",
           std::vector<json>(static_cast<std::size_t>(group.num_metadata_builders), arguments)},
          {"kernel_block_size", or_null(plan.kernel_block_size)},
          {"builder_block_size", plan.builder_block_size},
          {"kernel_block_table_shape", or_null(plan.kernel_block_table_shape)}};
}

json group_builders_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "block_size", "group_kernel_block_size",
                   "kernel_block_sizes", "requires_block_table_width", "max_model_len",
                   "decode_context_parallel_size", "max_num_seqs", "num_metadata_builders",
                   "expect"});
  const BuilderGroup group = {
      .block_size = int_from(row.at("block_size")),
      .group_kernel_block_size = optional_int_from(row.at("group_kernel_block_size")),
      .backend = {"B", block_sizes_from(row.at("kernel_block_sizes"))},
      .requires_block_table_width = row.at("requires_block_table_width").boolean(),
      .max_model_len = int_from(row.at("max_model_len")),
      .decode_context_parallel_size = int_from(row.at("decode_context_parallel_size")),
      .max_num_seqs = int_from(row.at("max_num_seqs")),
      .num_metadata_builders = int_from(row.at("num_metadata_builders"))};
  if (group.num_metadata_builders < 0 || group.num_metadata_builders > (1 << 16)) {
    row.at("num_metadata_builders").fail("an integer in [0, 2^16]");
  }
  return value_or_error([&] { return plan_json(group, plan_builders(group)); });
}

json graph_mode_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "mode", "min_support", "min_backend",
                   "uniform_decode_query_len", "attention_is_split", "compiled", "graph_partition",
                   "piecewise_capture_available", "expect"});
  const std::optional<GraphMode> mode = graph_mode_from_name(row.at("mode").string());
  if (!mode) row.at("mode").fail("a graph mode such as FULL_AND_PIECEWISE");
  const GraphModeRequest request = {
      .mode = *mode,
      .uniform_decode_query_len = int_from(row.at("uniform_decode_query_len")),
      .attention_is_split = row.at("attention_is_split").boolean(),
      .compiled = row.at("compiled").boolean(),
      .graph_partition = row.at("graph_partition").boolean(),
      .piecewise_capture_available = row.at("piecewise_capture_available").boolean()};
  const WeakestGraphSupport weakest = {graph_support_from(row.at("min_support")),
                                       optional_string_from(row.at("min_backend"))};
  return value_or_error([&]() -> json { return name(resolve_graph_mode(request, weakest)); });
}

json graph_support_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "max_query_len", "groups", "expect"});
  std::vector<GroupGraphSupport> groups;
  for (const JsonNode& element : row.at("groups").elements()) {
    const std::vector<JsonNode> parts = element.elements();
    if (parts.size() != 3) element.fail("[class name, level, bound]");
    groups.push_back(
        {parts[0].string(), graph_support_from(parts[1]), optional_int_from(parts[2])});
  }
  const WeakestGraphSupport weakest = weakest_graph_support(groups);
  json varlen;
  if (const auto missing = missing_varlen_support(groups, int_from(row.at("max_query_len")))) {
    varlen = json::array({missing->backend, or_null(missing->max_query_len)});
  }
  return {{"min_support", name(weakest.level)},
          {"min_backend", or_null(weakest.backend)},
          {"varlen_unsupported", varlen}};
}

struct GroupKind {
  std::string_view name;
  json (*answer)(const JsonNode& row);
};
constexpr GroupKind kGroupKinds[] = {
    {"common_block_size", common_block_size_row}, {"supported_layouts", supported_layouts_row},
    {"layout_properties", layout_properties_row}, {"kernel_block_table", kernel_block_table_row},
    {"reorder_threshold", reorder_threshold_row}, {"resolve_layout", resolve_layout_row},
    {"group_builders", group_builders_row},       {"graph_mode", graph_mode_row},
    {"graph_support", graph_support_row},
};

}  // namespace

std::optional<json> answer_group_row(const std::string& kind, const JsonNode& row) {
  for (const GroupKind& one : kGroupKinds) {
    if (one.name == kind) return one.answer(row);
  }
  return std::nullopt;
}

}  // namespace attn
