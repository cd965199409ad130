#include "selector/replay.h"

#include <fmt/core.h>

#include <utility>

#include "attn/error.h"
#include "core/text_file.h"
#include "selector/table_kinds.h"

namespace attn {
namespace {

using nlohmann::json;

ReplayReport replay_whole(std::string_view text, const RowObserver& on_row) {
  const json value = strictly_parsed(text, "table");
  const JsonNode root(value, "table");
  expect_format(root, kTableFormat);
  ReplayReport report;
  report.vllm_version = root.at("vllm_version").string();
  for (const auto& [key, member] : root.members()) {
    if (key == "format" || key == "vllm_version" || key == "environment") continue;
    if (!report.table.empty()) member.fail("only one table in the file");
    report.table = key;
  }
  if (report.table.empty()) throw Error("table holds no rows");
  ReplayRecorder recorder(report, on_row);
  std::int64_t number = 0;
  answer_whole_table(report.table, root, value, [&](WholeRow whole) {
    ReplayedRow row;
    row.line = ++number;
    row.at = std::move(whole.at);
    row.answer = std::move(whole.answer);
    recorder.note(std::move(row), whole.expected);
  });
  return report;
}

}  // namespace

ReplayReport replay_table(std::string_view text, bool lines, const RowObserver& on_row) {
  if (!lines) return replay_whole(text, on_row);
  LineFormat format;
  format.name = kTableFormat;
  format.kind = line_kind;
  return replay_lines(text, format, on_row);
}

ReplayReport replay_table_file(const std::string& path, const RowObserver& on_row) {
  const bool lines = path.ends_with(".jsonl");
  if (!lines && !path.ends_with(".json")) {
    throw Error(fmt::format("{} is neither .jsonl nor .json", path));
  }
  const std::string text = text_of_file(path);
  try {
    return replay_table(text, lines, on_row);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace attn
