#include "cli/table_report.h"

#include <fmt/core.h>

#include <span>

#include "attn/golden.h"
#include "cli/document.h"
#include "cli/output_path.h"

namespace attn::cli {
namespace {

int exit_of_replay(const ReplayReport& report, bool answered) {
  if (report.failed != 0) return kFailed;
  return report.passed == 0 && !answered ? kNothingRan : kPassed;
}

Json answer_line(const ReplayedRow& row) {
  Json line = {{"line", row.line}};
  if (row.at) line["at"] = *row.at;
  if (row.id) line["id"] = *row.id;
  line["pass"] = nullptr;
  if (row.pass) line["pass"] = *row.pass;
  line["answer"] = row.answer;
  return line;
}

Json difference_json(const ReplayDifference& one) {
  Json difference = {{"line", one.line}};
  if (one.id) difference["id"] = *one.id;
  difference["at"] = one.at;
  difference["expected"] = Json(one.expected);
  difference["actual"] = Json(one.actual);
  return difference;
}

Json report_document(const GlobalOptions& options, std::string_view command,
                     const std::string& table, const ReplayReport& report, int exit) {
  Json first = Json::array();
  for (const ReplayDifference& one : report.first) first.push_back(difference_json(one));
  Json doc = document(command, options);
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

std::string difference_line(const ReplayDifference& one) {
  return fmt::format("line {}{} {}: expected {}, got {}", one.line,
                     one.id ? fmt::format(" ({})", *one.id) : "", one.at, to_text(one.expected),
                     to_text(one.actual));
}

}  // namespace

int report_table(const GlobalOptions& options, std::string_view command, const std::string& table,
                 const std::string& answers,
                 const std::function<ReplayReport(const RowObserver& on_row)>& replay) {
  if (!answers.empty()) expect_other_place(table, answers);
  std::string lines;
  const ReplayReport report = replay([&](const ReplayedRow& row) {
    if (!answers.empty()) lines += to_text(answer_line(row)) + "\n";
  });
  if (!answers.empty()) write_file_atomically(answers, std::as_bytes(std::span(lines)));
  const int exit = exit_of_replay(report, !answers.empty());
  if (options.json) {
    write_json(report_document(options, command, table, report, exit));
    return exit;
  }
  for (const ReplayDifference& one : report.first) {
    if (!options.quiet) write_line(difference_line(one));
  }
  write_line(Counts{report.passed, report.failed, report.skipped}.text());
  return exit;
}

}  // namespace attn::cli
