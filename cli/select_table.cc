#include "cli/select_table.h"

#include <fmt/format.h>

#include <span>

#include "attn/golden.h"
#include "cli/document.h"
#include "cli/output_path.h"
#include "selector/replay.h"

namespace attn::cli {
namespace {

int exit_of(const ReplayReport& report, bool answered) {
  if (report.failed != 0) return kFailed;
  return report.passed == 0 && !answered ? kNothingRan : kPassed;
}

Json answer_line(const ReplayedRow& row) {
  Json line = {{"line", row.line}};
  if (row.at) line["at"] = *row.at;
  line["pass"] = nullptr;
  if (row.pass) line["pass"] = *row.pass;
  line["answer"] = row.answer;
  return line;
}

Json report_document(const GlobalOptions& options, const std::string& table,
                     const ReplayReport& report, int exit) {
  Json first = Json::array();
  for (const ReplayDifference& one : report.first) {
    first.push_back({{"line", one.line},
                     {"at", one.at},
                     {"expected", Json(one.expected)},
                     {"actual", Json(one.actual)}});
  }
  Json doc = document("select", options);
  doc["file"] = table;
  doc["table"] = report.table;
  doc["vllm_version"] = report.vllm_version;
  doc["rows"] = report.rows;
  doc["passed"] = report.passed;
  doc["failed"] = report.failed;
  doc["skipped"] = report.skipped;
  doc["first"] = first;
  doc["exit"] = exit;
  return doc;
}

}  // namespace

int select_table(const GlobalOptions& options, const std::string& table,
                 const std::string& answers) {
  if (!answers.empty()) expect_other_place(table, answers);
  std::string lines;
  const ReplayReport report = replay_table_file(table, [&](const ReplayedRow& row) {
    if (!answers.empty()) lines += to_text(answer_line(row)) + "\n";
  });
  if (!answers.empty()) write_file_atomically(answers, std::as_bytes(std::span(lines)));
  const int exit = exit_of(report, !answers.empty());
  if (options.json) {
    write_json(report_document(options, table, report, exit));
    return exit;
  }
  for (const ReplayDifference& one : report.first) {
    if (options.quiet) break;
    write_line(fmt::format("line {} {}: expected {}, got {}", one.line, one.at,
                           to_text(one.expected), to_text(one.actual)));
  }
  write_line(Counts{report.passed, report.failed, report.skipped}.text());
  return exit;
}

}  // namespace attn::cli
