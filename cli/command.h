// A command: its flags, declared on the parser, and what it does.
#pragma once

#include <functional>
#include <string>

#include "cli/options.h"
#include "cli/parser.h"

namespace attn::cli {

struct Command {
  Parser parser;
  std::function<int()>
      run;  // after parsing; returns the exit code, throws attn::Error for bad input
};

// `options` must outlive the command; they are filled by parsing.
Command add_list_command(const Parser& parser, const GlobalOptions& options);
Command add_run_command(const Parser& parser, const GlobalOptions& options);
Command add_compare_command(const Parser& parser, const GlobalOptions& options);
Command add_show_command(const Parser& parser, const GlobalOptions& options);
Command add_golden_command(const Parser& parser, const GlobalOptions& options);
Command add_select_command(const Parser& parser, const GlobalOptions& options);
Command add_route_command(const Parser& parser, const GlobalOptions& options);

}  // namespace attn::cli
