// A command: its flags, declared on the parser, and what it does.
#pragma once

#include <functional>
#include <string>

#include "cli/options.h"

namespace CLI {
class App;
}

namespace attn::cli {

struct Command {
  CLI::App* app = nullptr;
  std::function<int()>
      run;  // after parsing; returns the exit code, throws attn::Error for bad input
};

// For options whose value is a path: an empty one is not "not given".
inline std::string refuse_empty(const std::string& word) {
  return word.empty() ? "an empty path" : "";
}

// `options` must outlive the command; they are filled by parsing.
Command add_list_command(CLI::App& parser, const GlobalOptions& options);
Command add_run_command(CLI::App& parser, const GlobalOptions& options);
Command add_compare_command(CLI::App& parser, const GlobalOptions& options);
Command add_show_command(CLI::App& parser, const GlobalOptions& options);
Command add_golden_command(CLI::App& parser, const GlobalOptions& options);
Command add_select_command(CLI::App& parser, const GlobalOptions& options);
Command add_route_command(CLI::App& parser, const GlobalOptions& options);

}  // namespace attn::cli
