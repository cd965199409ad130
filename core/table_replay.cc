#include "core/table_replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "attn/error.h"

namespace attn {
namespace {

using nlohmann::json;

std::string escaped(std::string key) {
  for (std::size_t at = 0; (at = key.find_first_of("~/", at)) != std::string::npos; at += 2) {
    key.replace(at, 1, key[at] == '~' ? "~0" : "~1");
  }
  return key;
}

ReplayDifference difference(std::string at, json expected, json actual) {
  return {0, std::nullopt, std::move(at), std::move(expected), std::move(actual)};
}

// Where two values differ first, in the order of `expected`; none when they are equal.
std::optional<ReplayDifference> first_difference(const json& expected, const json& actual,
                                                 const std::string& at) {
  if (expected == actual) return std::nullopt;
  if (expected.is_object() && actual.is_object()) {
    for (const auto& [key, value] : expected.items()) {
      const std::string inner = at + "/" + escaped(key);
      if (!actual.contains(key)) return difference(inner, value, nullptr);
      if (auto found = first_difference(value, actual[key], inner)) return found;
    }
    for (const auto& [key, value] : actual.items()) {
      if (!expected.contains(key)) return difference(at + "/" + escaped(key), nullptr, value);
    }
  }
  if (expected.is_array() && actual.is_array()) {
    for (std::size_t index = 0; index < expected.size() && index < actual.size(); ++index) {
      const std::string inner = fmt::format("{}/{}", at, index);
      if (auto found = first_difference(expected[index], actual[index], inner)) return found;
    }
    const std::size_t index = std::min(expected.size(), actual.size());
    const auto item = [index](const json& list) {
      return index < list.size() ? list[index] : json(nullptr);
    };
    return difference(fmt::format("{}/{}", at, index), item(expected), item(actual));
  }
  return difference(at, expected, actual);
}

// A row may leave out some of the compared members.
json members_both_have(const json& answer, const json& expected) {
  json members = json::object();
  for (const auto& [key, value] : answer.items()) {
    if (expected.contains(key)) members[key] = value;
  }
  return members;
}

// Python's own texts, and those of failed assertions without one.
bool text_is_free(const json& error) {
  constexpr std::string_view kByTypeOnly[] = {"NotImplementedError", "KeyError", "IndexError",
                                              "AttributeError", "TypeError"};
  if (!error.is_object() || !error.contains("type") || !error.contains("text")) return false;
  const json& type = error["type"];
  if (type == "AssertionError") return error["text"] == "";
  return std::any_of(std::begin(kByTypeOnly), std::end(kByTypeOnly),
                     [&](std::string_view one) { return type == one; });
}

// `expected` with our text wherever the text of an error does not count.
json with_free_texts(json expected, const json& actual) {
  if (expected.is_object() && actual.is_object()) {
    for (auto& [key, value] : expected.items()) {
      if (!actual.contains(key)) continue;
      const json& ours = actual[key];
      if (key == "error" && text_is_free(value) && ours.is_object() && ours.contains("text")) {
        value["text"] = ours["text"];
      } else {
        value = with_free_texts(std::move(value), ours);
      }
    }
  } else if (expected.is_array() && actual.is_array()) {
    for (std::size_t index = 0; index < expected.size() && index < actual.size(); ++index) {
      expected[index] = with_free_texts(std::move(expected[index]), actual[index]);
    }
  }
  return expected;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace

void ReplayRecorder::note(ReplayedRow row, const json& expected) {
  ++report_.rows;
  if (expected.empty()) {
    ++report_.skipped;
  } else {
    auto found = first_difference(expected, members_both_have(row.answer, expected), "");
    row.pass = !found;
    ++(found ? report_.failed : report_.passed);
    if (found && report_.first.size() < kMaxDifferences) {
      found->line = row.line;
      found->id = row.id;
      report_.first.push_back(std::move(*found));
    }
  }
  on_row_(row);
}

json members_of(const json& row, const std::vector<std::string>& keys) {
  json members = json::object();
  for (const std::string& key : keys) {
    const auto found = row.find(key);
    if (found != row.end()) members[key] = *found;
  }
  return members;
}

json strictly_parsed(std::string_view text, const std::string& name) {
  const JsonDocument checked(text, name);  // its errors come first
  return json::parse(text);
}

void expect_format(const JsonNode& header, std::string_view format) {
  if (header.at("format").string() != format) header.at("format").fail(format);
}

// Errors name the line, whatever made them.
json answer_of(const LineKind& kind, const JsonNode& node, const std::string& line) {
  try {
    return kind.answer(node);
  } catch (const Error& error) {
    const std::string_view text = error.what();
    if (text.starts_with(line)) throw;
    throw Error(fmt::format("{}: {}", line, text));
  }
}

ReplayReport replay_lines(std::string_view text, const LineFormat& format,
                          const RowObserver& on_row) {
  const std::vector<std::string_view> lines = lines_of(text);
  if (lines.empty()) throw Error("the table is empty");
  const json header_value = strictly_parsed(lines.front(), "line 1");
  const JsonNode header(header_value, "line 1");
  expect_format(header, format.name);
  ReplayReport report;
  report.table = header.at("table").string();
  report.vllm_version = header.at("vllm_version").string();
  const LineKind kind = format.kind(header);
  const std::int64_t rows = header.at("rows").integer(0);
  if (rows != static_cast<std::int64_t>(lines.size()) - 1) {
    throw Error(fmt::format("line 1.rows is {}, but {} rows follow", rows, lines.size() - 1));
  }
  ReplayRecorder recorder(report, on_row);
  std::set<std::string> ids;
  for (std::size_t index = 1; index < lines.size(); ++index) {
    const std::string name = fmt::format("line {}", index + 1);
    const json value = strictly_parsed(lines[index], name);
    const JsonNode node(value, name);
    ReplayedRow row;
    row.line = static_cast<std::int64_t>(index) + 1;
    if (format.has_ids) {
      row.id = node.at("id").string();
      if (!ids.insert(*row.id).second) node.at("id").fail("an id that no other row has");
    }
    row.answer = answer_of(kind, node, name);
    json expected = members_of(value, kind.compared);
    if (format.python_texts_are_free) expected = with_free_texts(std::move(expected), row.answer);
    recorder.note(std::move(row), expected);
  }
  return report;
}

}  // namespace attn
