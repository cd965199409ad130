// Replays the script of steps on one pair of registries.
#include <fmt/core.h>

#include <regex>

#include "attn/backend_registry.h"
#include "attn/error.h"
#include "selector/json_values.h"
#include "selector/table_kinds.h"

namespace attn {
namespace {

using nlohmann::json;

constexpr const char* kDecorator = "<decorator>";

class Script {
 public:
  const BackendRegistry& attention() const { return attention_; }
  const BackendRegistry& mamba() const { return mamba_; }

  // The answer to one step; throws VllmError where vLLM raises. Throws Error for a step of none of
  // the known forms. Remarks behind the step are for the reader.
  json run(const JsonNode& step) {
    const std::string text = without_remark(step.string());
    static const std::regex kLookup(R"((Mamba)?AttentionBackendEnum\['([^']*)'\]( by value)?)");
    static const std::regex kMember(R"((Mamba )?(\w+)\.(\w+)(\(([^)]*)\))?)");
    static const std::regex kRegister(
        R"(register_backend\((?:(Mamba )?(\w+)|'([^']*)')(?:, '([^']*)')?(, is_mamba=True)?\)( without a path)?)");
    static const std::regex kApply(
        R"(apply decorator of register_backend\((Mamba )?(\w+)(, is_mamba=True)?\) to class ([\w.]+))");
    std::smatch parts;
    if (text == "last member name") return attention_.members().back().name;
    if (std::regex_match(text, parts, kLookup)) return look_up(parts);
    if (std::regex_match(text, parts, kMember)) return ask_member(parts, step);
    if (std::regex_match(text, parts, kRegister)) return register_backend(parts, step);
    if (std::regex_match(text, parts, kApply)) return apply_decorator(parts);
    step.fail("a known step");
  }

 private:
  static std::string without_remark(const std::string& text) {
    static const std::regex kRemark(R"(\s+(#|after ).*$)");
    return std::regex_replace(text, kRemark, "");
  }

  BackendRegistry& registry(bool is_mamba) { return is_mamba ? mamba_ : attention_; }

  json look_up(const std::smatch& parts) {
    BackendRegistry& table = registry(parts[1].matched);
    const std::string word = parts[2];
    const auto& member = parts[3].matched ? table.by_value(word) : table.at(word);
    return table.printed(member.name);
  }

  json ask_member(const std::smatch& parts, const JsonNode& step) {
    BackendRegistry& table = registry(parts[1].matched);
    const std::string name = parts[2];
    const std::string what = parts[3];
    const std::string arguments = parts[5];
    const bool is_call = parts[4].matched;
    if (!is_call && what == "value") return or_null(table.at(name).value);
    if (is_call && what == "get_path" && arguments.empty()) return table.path(name);
    if (is_call && what == "get_path" && arguments == "include_classname=True") {
      return table.path(name);
    }
    if (is_call && what == "get_path" && arguments == "include_classname=False") {
      return table.module(name);
    }
    if (is_call && what == "is_overridden" && arguments.empty()) return table.is_overridden(name);
    if (is_call && what == "clear_override" && arguments.empty()) {
      table.clear_override(name);
      return nullptr;
    }
    if (is_call && what == "get_class" && arguments.empty()) {
      table.expect_class(name);
      return table.path(name);
    }
    step.fail("a known step");
  }

  json register_backend(const std::smatch& parts, const JsonNode& step) {
    const bool by_string = parts[3].matched;
    const bool has_path = parts[4].matched;
    if (has_path == parts[6].matched) step.fail("a path or \"without a path\"");
    const bool is_mamba = parts[5].matched;
    if (by_string) {
      registry(is_mamba).add(parts[3].str(), parts[4].str());
    } else if (has_path) {
      override_path(parts[1].matched, is_mamba, parts[2], parts[4]);
    }
    return kDecorator;
  }

  // The table is chosen by is_mamba, not by the enum: a member of the other enum has no effect.
  void override_path(bool mamba_member, bool is_mamba, const std::string& name,
                     const std::string& path) {
    registry(mamba_member).at(name);
    if (mamba_member == is_mamba) registry(is_mamba).override_path(name, path);
  }

  json apply_decorator(const std::smatch& parts) {
    override_path(parts[1].matched, parts[3].matched, parts[2], parts[4]);
    return parts[4].str();
  }

  BackendRegistry attention_{RegistryKind::kAttention};
  BackendRegistry mamba_{RegistryKind::kMamba};
};

json members_json(const BackendRegistry& registry) {
  json members = json::array();
  for (const BackendRegistry::Member& member : registry.members()) {
    members.push_back(json::array({member.name, or_null(member.value)}));
  }
  return members;
}

}  // namespace

void answer_registry(const JsonNode& table, const json& raw, const RowSink& sink) {
  table.expect_only({"attention", "mamba", "member_str", "mamba_member_str", "steps"});
  Script script;
  const auto value = [&](const char* key, json answer) {
    json expected = json::object();
    if (raw.contains(key)) expected["value"] = raw[key];
    sink({fmt::format("/registry/{}", key), std::move(expected), {{"value", std::move(answer)}}});
  };
  value("attention", members_json(script.attention()));
  value("mamba", members_json(script.mamba()));
  value("member_str", script.attention().printed(script.attention().members().front().name));
  value("mamba_member_str", script.mamba().printed(script.mamba().members().front().name));
  std::size_t index = 0;
  for (const JsonNode& row : table.at("steps").elements()) {
    row.expect_only({"step", "ok", "error", "text"});
    json answer;
    try {
      answer = {{"ok", script.run(row.at("step"))}};
    } catch (const VllmError& error) {
      answer = to_json_value(error);
    }
    sink({fmt::format("/registry/steps/{}", index),
          members_of(raw["steps"][index], {"ok", "error", "text"}), std::move(answer)});
    ++index;
  }
}

}  // namespace attn
