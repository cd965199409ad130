// route: which child of a composite answers, and why; replays of vLLM's tables of composites.
#include <CLI/CLI.hpp>
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

Command add_route_command(CLI::App& parser, const GlobalOptions& options) {
  CLI::App* app = parser.add_subcommand("route", "The child of a composite that answers, and why")
                      ->fallthrough();
  struct Flags {
    std::string table;
    std::string answers;
    std::string case_path;
    std::string backend;
  };
  auto flags = std::make_shared<Flags>();
  CLI::Option* table =
      app->add_option("--table", flags->table, "replay a table of composites")->check(refuse_empty);
  app->add_option("--answers", flags->answers, "with --table: every row's answer")
      ->check(refuse_empty)
      ->needs(table);
  CLI::Option* case_path =
      app->add_option("--case", flags->case_path, "a case file")->check(refuse_empty);
  CLI::Option* backend =
      app->add_option("--backend", flags->backend, "with --case: COMPOSITE(A,B)")->needs(case_path);
  case_path->needs(backend)->excludes(table);
  return {app, [&options, flags, table, case_path] {
            if (table->count() != 0) return route_table(options, flags->table, flags->answers);
            if (case_path->count() == 0) throw Error("route needs --table or --case");
            return route_case(options, flags->case_path, flags->backend);
          }};
}

}  // namespace attn::cli
