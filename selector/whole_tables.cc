// Tables that are one file: priorities, kv_quant_mode, cache_dtypes, attention_config,
// mamba_select.
#include <fmt/core.h>

#include "attn/attention_config.h"
#include "attn/error.h"
#include "selector/json_values.h"
#include "selector/table_kinds.h"

namespace attn {
namespace {

using nlohmann::json;

constexpr std::string_view kTextBegin = "Value error, ";

json names_json(std::span<const std::string_view> names) {
  json list = json::array();
  for (const std::string_view name : names) list.push_back(name);
  return list;
}

CudaPriorityInputs priority_inputs(const std::vector<JsonNode>& values,
                                   const std::vector<std::string>& columns) {
  CudaPriorityInputs in;
  for (std::size_t index = 0; index < columns.size(); ++index) {
    const std::string& column = columns[index];
    const JsonNode& value = values[index];
    if (column == "use_mla") in.use_mla = value.boolean();
    if (column == "major") in.capability.major = int_from(value);
    if (column == "minor") in.capability.minor = int_from(value);
    if (column == "num_heads") in.num_heads = optional_int_from(value);
    if (column == "kv_cache_dtype") in.kv_cache_dtype = cache_dtype_from(value);
    if (column == "use_non_causal") in.use_non_causal = value.boolean();
    if (column == "head_size") in.head_size = optional_int_from(value);
    if (column == "use_mm_prefix") in.use_mm_prefix = value.boolean();
  }
  return in;
}

// The text is compared from "Value error, " on; before it stands the config library's own.
json without_preamble(json result) {
  if (!result.is_object() || !result.contains("text") || !result["text"].is_string()) return result;
  const std::string text = result["text"];
  const std::size_t begin = text.find(kTextBegin);
  if (begin != std::string::npos) result["text"] = text.substr(begin + kTextBegin.size());
  return result;
}

json attention_config_result(const JsonNode& args) {
  args.expect_only({"backend", "backend_per_kind"});
  std::optional<std::string> backend;
  std::map<std::string, std::string> per_kind;
  if (args.has("backend")) backend = optional_string_from(args.at("backend"));
  if (args.has("backend_per_kind")) {
    for (const auto& [kind, name] : args.at("backend_per_kind").members()) {
      per_kind[kind] = name.string();
    }
  }
  try {
    const AttentionConfig config =
        parse_attention_config(backend, per_kind, BackendRegistry(RegistryKind::kAttention));
    json kinds = json::object();
    for (const auto& [kind, name_of] : config.backend_per_kind) kinds[name(kind)] = name_of;
    return {{"backend", or_null(config.backend)},
            {"backend_per_kind", kinds},
            {"minimax_m3_msa_decode_backend", config.minimax_m3_msa_decode_backend}};
  } catch (const VllmError& error) {
    return to_json_value(error);
  }
}

json mode_entry(std::string_view asked, KvQuantMode mode) {
  return json::array({asked, static_cast<int>(mode), name(mode)});
}

}  // namespace

void answer_priorities(const JsonNode& table, const json& raw, const RowSink& sink) {
  table.expect_only({"columns", "lists", "cases"});
  std::vector<std::string> columns;
  std::size_t list_column = std::string::npos;
  for (const JsonNode& column : table.at("columns").elements()) {
    column.choice({"use_mla", "major", "minor", "num_heads", "kv_cache_dtype", "use_non_causal",
                   "head_size", "use_mm_prefix", "list"});
    if (column.string() == "list") list_column = columns.size();
    columns.push_back(column.string());
  }
  const std::vector<JsonNode> lists = table.at("lists").elements();
  std::size_t index = 0;
  for (const JsonNode& row : table.at("cases").elements()) {
    const std::vector<JsonNode> values = row.elements();
    if (values.size() != columns.size()) {
      throw Error(fmt::format("{} has {} values, but there are {} columns", row.path(),
                              values.size(), columns.size()));
    }
    json expected = json::object();
    if (list_column != std::string::npos) {
      const auto list = static_cast<std::size_t>(values[list_column].integer(0));
      if (list >= lists.size()) values[list_column].fail("an index of lists");
      expected["list"] = raw["lists"][list];
    }
    sink({fmt::format("/priorities/cases/{}", index++),
          std::move(expected),
          {{"list", names_json(cuda_priorities(priority_inputs(values, columns)))}}});
  }
}

void answer_kv_quant_mode(const JsonNode& table, const json& raw, const RowSink& sink) {
  table.expect_only({"members", "by_dtype"});
  for (const char* list : {"members", "by_dtype"}) {
    std::size_t index = 0;
    for (const JsonNode& row : table.at(list).elements()) {
      const std::vector<JsonNode> entry = row.elements();
      if (entry.empty()) row.fail("[name, value, member]");
      const std::string asked = entry.front().string();
      const bool by_dtype = list == std::string_view("by_dtype");
      const std::optional<KvQuantMode> mode =
          by_dtype ? std::optional(kv_quant_mode(asked)) : kv_quant_mode_member(asked);
      if (!mode) entry.front().fail("a member of KVQuantMode");
      json expected = json::object();
      if (entry.size() > 1) expected["value"] = raw[list][index];
      sink({fmt::format("/kv_quant_mode/{}/{}", list, index++),
            std::move(expected),
            {{"value", mode_entry(asked, *mode)}}});
    }
  }
}

void answer_cache_dtypes(const json& raw, const RowSink& sink) {
  json names = json::array();
  for (int index = 0; index < kNumCacheDTypes; ++index) {
    names.push_back(name(static_cast<CacheDType>(index)));
  }
  sink({"/cache_dtypes", {{"value", raw}}, {{"value", std::move(names)}}});
}

void answer_attention_config(const JsonNode& table, const json& raw, const RowSink& sink) {
  std::size_t index = 0;
  for (const JsonNode& row : table.elements()) {
    row.expect_only({"args", "result"});
    json expected = members_of(raw[index], {"result"});
    if (expected.contains("result")) expected["result"] = without_preamble(expected["result"]);
    sink({fmt::format("/attention_config/{}", index++),
          std::move(expected),
          {{"result", attention_config_result(row.at("args"))}}});
  }
}

void answer_mamba_select(const JsonNode& table, const json& raw, const RowSink& sink) {
  const BackendRegistry registry(RegistryKind::kMamba);
  std::size_t index = 0;
  for (const JsonNode& row : table.elements()) {
    row.expect_only({"mamba_type", "batch_invariant", "result"});
    const std::string member = row.at("mamba_type").string();
    if (!registry.contains(member)) row.at("mamba_type").fail("a member of the mamba registry");
    const MambaSelection selection = select_mamba(member, row.at("batch_invariant").boolean());
    const json result = selection.error
                            ? to_json_value(*selection.error)
                            : json{{"path", selection.path}, {"get_name", selection.get_name}};
    sink({fmt::format("/mamba_select/{}", index),
          members_of(raw[index], {"result"}),
          {{"result", result}}});
    ++index;
  }
}

void answer_whole_table(const std::string& kind, const JsonNode& root, const json& raw,
                        const RowSink& sink) {
  const JsonNode table = root.at(kind);
  const json& rows = raw.at(kind);
  if (kind == "registry") return answer_registry(table, rows, sink);
  if (kind == "priorities") return answer_priorities(table, rows, sink);
  if (kind == "capabilities") return answer_capabilities(root, table, rows, sink);
  if (kind == "kv_quant_mode") return answer_kv_quant_mode(table, rows, sink);
  if (kind == "cache_dtypes") return answer_cache_dtypes(rows, sink);
  if (kind == "attention_config") return answer_attention_config(table, rows, sink);
  if (kind == "mamba_select") return answer_mamba_select(table, rows, sink);
  throw Error(fmt::format("{} is no kind of decision table", in_quotes(kind)));
}

}  // namespace attn
