#include "cli/select_table.h"

#include "cli/table_report.h"
#include "selector/replay.h"

namespace attn::cli {

int select_table(const GlobalOptions& options, const std::string& table,
                 const std::string& answers) {
  return report_table(options, "select", table, answers,
                      [&](const RowObserver& on_row) { return replay_table_file(table, on_row); });
}

}  // namespace attn::cli
