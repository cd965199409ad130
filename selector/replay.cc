#include "selector/replay.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "attn/error.h"
#include "core/strict_json.h"
#include "selector/table_kinds.h"

namespace attn {
namespace {

using nlohmann::json;

// Errors of a strict reading first, then the value.
json strictly_parsed(std::string_view text, const std::string& name) {
  const JsonDocument checked(text, name);
  return json::parse(text);
}

std::string escaped(std::string key) {
  for (std::size_t at = 0; (at = key.find_first_of("~/", at)) != std::string::npos; at += 2) {
    key.replace(at, 1, key[at] == '~' ? "~0" : "~1");
  }
  return key;
}

// Where two values differ first, in the order of `expected`; none when they are equal.
std::optional<ReplayDifference> first_difference(const json& expected, const json& actual,
                                                 const std::string& at) {
  if (expected == actual) return std::nullopt;
  if (expected.is_object() && actual.is_object()) {
    for (const auto& [key, value] : expected.items()) {
      const std::string inner = at + "/" + escaped(key);
      if (!actual.contains(key)) return ReplayDifference{0, inner, value, nullptr};
      if (auto found = first_difference(value, actual[key], inner)) return found;
    }
    for (const auto& [key, value] : actual.items()) {
      if (!expected.contains(key))
        return ReplayDifference{0, at + "/" + escaped(key), nullptr, value};
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
    return ReplayDifference{0, fmt::format("{}/{}", at, index), item(expected), item(actual)};
  }
  return ReplayDifference{0, at, expected, actual};
}

class Recorder {
 public:
  Recorder(ReplayReport& report, const std::function<void(const ReplayedRow&)>& on_row)
      : report_(report), on_row_(on_row) {}

  // `expected` holds the compared members that the row has.
  void note(ReplayedRow row, const json& expected) {
    ++report_.rows;
    if (expected.empty()) {
      ++report_.skipped;
    } else {
      auto difference = first_difference(expected, compared(row.answer, expected), "");
      row.pass = !difference;
      ++(difference ? report_.failed : report_.passed);
      if (difference && report_.first.size() < kMaxDifferences) {
        difference->line = row.line;
        report_.first.push_back(std::move(*difference));
      }
    }
    on_row_(row);
  }

 private:
  // A row may leave out some of the compared members.
  static json compared(const json& answer, const json& expected) {
    json members = json::object();
    for (const auto& [key, value] : answer.items()) {
      if (expected.contains(key)) members[key] = value;
    }
    return members;
  }

  ReplayReport& report_;
  const std::function<void(const ReplayedRow&)>& on_row_;
};

void expect_format(const JsonNode& header) {
  if (header.at("format").string() != kTableFormat) header.at("format").fail(kTableFormat);
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

void replay_lines(std::string_view text, ReplayReport& report, Recorder& recorder) {
  const std::vector<std::string_view> lines = lines_of(text);
  if (lines.empty()) throw Error("the table is empty");
  const json header_value = strictly_parsed(lines.front(), "line 1");
  const JsonNode header(header_value, "line 1");
  expect_format(header);
  report.table = header.at("table").string();
  report.vllm_version = header.at("vllm_version").string();
  const LineKind kind = line_kind(header);
  const std::int64_t rows = header.at("rows").integer(0);
  if (rows != static_cast<std::int64_t>(lines.size()) - 1) {
    throw Error(fmt::format("line 1.rows is {}, but {} rows follow", rows, lines.size() - 1));
  }
  for (std::size_t index = 1; index < lines.size(); ++index) {
    const std::string name = fmt::format("line {}", index + 1);
    const json value = strictly_parsed(lines[index], name);
    ReplayedRow row;
    row.line = static_cast<std::int64_t>(index) + 1;
    row.answer = kind.answer(JsonNode(value, name));
    recorder.note(std::move(row), members_of(value, kind.compared));
  }
}

void replay_whole(std::string_view text, ReplayReport& report, Recorder& recorder) {
  const json value = strictly_parsed(text, "table");
  const JsonNode root(value, "table");
  expect_format(root);
  report.vllm_version = root.at("vllm_version").string();
  for (const auto& [key, member] : root.members()) {
    if (key == "format" || key == "vllm_version" || key == "environment") continue;
    if (!report.table.empty()) member.fail("only one table in the file");
    report.table = key;
  }
  if (report.table.empty()) throw Error("table holds no rows");
  std::int64_t number = 0;
  answer_whole_table(report.table, root, value, [&](WholeRow whole) {
    ReplayedRow row;
    row.line = ++number;
    row.at = std::move(whole.at);
    row.answer = std::move(whole.answer);
    recorder.note(std::move(row), whole.expected);
  });
}

}  // namespace

ReplayReport replay_table(std::string_view text, bool lines,
                          const std::function<void(const ReplayedRow&)>& on_row) {
  ReplayReport report;
  Recorder recorder(report, on_row);
  if (lines) {
    replay_lines(text, report, recorder);
  } else {
    replay_whole(text, report, recorder);
  }
  return report;
}

ReplayReport replay_table_file(const std::string& path,
                               const std::function<void(const ReplayedRow&)>& on_row) {
  const bool lines = path.ends_with(".jsonl");
  if (!lines && !path.ends_with(".json")) {
    throw Error(fmt::format("{} is neither .jsonl nor .json", path));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(fmt::format("{} cannot be read", path));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) throw Error(fmt::format("{} cannot be read", path));
  try {
    return replay_table(text, lines, on_row);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace attn
