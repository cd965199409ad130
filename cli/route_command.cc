// route: which child of a composite answers, and why; replays of vLLM's tables of composites.
#include <memory>

#include "attn/error.h"
#include "cli/command.h"
#include "cli/route_case.h"
#include "cli/table_report.h"
#include "cli/vllm_composites.h"
#include "composite/replay.h"

namespace attn::cli {
namespace {

int route_table(const GlobalOptions& options, const std::string& table,
                const std::string& answers) {
  return report_table(options, "route", table, answers, [&](const RowObserver& on_row) {
    return replay_composite_table_file(table, vllm_backend_of_table, on_row);
  });
}

}  // namespace

Command add_route_command(const Parser& parser, const GlobalOptions& options) {
  const Parser command = parser.command("route", "The child of a composite that answers, and why");
  struct Flags {
    std::string table;
    std::string answers;
    std::string case_path;
    std::string backend;
  };
  auto flags = std::make_shared<Flags>();
  const Option table =
      command.text("--table", flags->table, "replay a table of composites").not_empty();
  command.text("--answers", flags->answers, "with --table: every row's answer")
      .not_empty()
      .needs(table);
  const Option case_path = command.text("--case", flags->case_path, "a case file").not_empty();
  const Option backend =
      command.text("--backend", flags->backend, "with --case: COMPOSITE(A,B)").needs(case_path);
  case_path.needs(backend).excludes(table);
  return {command, [&options, flags, table, case_path] {
            if (table.given()) return route_table(options, flags->table, flags->answers);
            if (!case_path.given()) throw Error("route needs --table or --case");
            return route_case(options, flags->case_path, flags->backend);
          }};
}

}  // namespace attn::cli
