// What a replay of a decision table prints and writes.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cli/options.h"
#include "core/table_replay.h"

namespace attn::cli {

// Runs the replay of `table`, writes the answers to `answers` unless it is empty, and reports in
// the name of `command`. The exit code.
int report_table(const GlobalOptions& options, std::string_view command, const std::string& table,
                 const std::string& answers,
                 const std::function<ReplayReport(const RowObserver& on_row)>& replay);

}  // namespace attn::cli
