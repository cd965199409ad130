// attn-oracle: parses, calls, prints.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "attn/error.h"
#include "attn/parallel.h"
#include "cli/command.h"
#include "cli/document.h"
#include "cli/interrupt.h"
#include "cli/version.h"

namespace attn::cli {
namespace {

constexpr int kMaxThreads = 1024;

// One line for a usage error; the parser's own texts may have several.
int report(const CLI::App& parser, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {  // --help, --version
    std::ostringstream text;
    parser.exit(error, text);
    std::string_view lines = text.view();
    while (lines.ends_with('\n')) lines.remove_suffix(1);
    write_line(lines);
    return kPassed;
  }
  const std::vector<std::string> unknown = parser.remaining();
  const bool no_command = parser.get_subcommands().empty() && !unknown.empty();
  write_error(fmt::format(
      "{} (see attn-oracle --help)",
      no_command ? fmt::format("no command \"{}\"", unknown.front()) : std::string(error.what())));
  return kBadInput;
}

int run(int argc, char** argv) {
  CLI::App app{
      "Says whether an attention kernel is right: recomputes cases exactly and judges answers.",
      "attn-oracle"};
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", fmt::format("attn-oracle {}", kVersion));
  const Parser parser(&app);
  GlobalOptions options;
  int threads = 0;
  parser.flag("--json", options.json, "machine output on standard output");
  parser.flag("--quiet", options.quiet, "no progress, no prose");
  parser.integer("--threads", threads, "worker threads, default all; never changes a result")
      .within(1, kMaxThreads);
  parser.flag("--require-gpu", options.require_gpu, "a device skip becomes a failure");

  const std::vector<Command> commands = {
      add_run_command(parser, options),    add_compare_command(parser, options),
      add_show_command(parser, options),   add_golden_command(parser, options),
      add_select_command(parser, options), add_route_command(parser, options),
      add_list_command(parser, options)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report(app, error);
  }
  std::vector<std::string> words(argv, argv + argc);
  words[0] = "attn-oracle";
  options.replay = shell_quoted(words);
  if (threads != 0) set_num_workers(threads);
  for (const Command& command : commands) {
    if (command.parser.chosen()) return command.run();
  }
  return kBadInput;
}

}  // namespace
}  // namespace attn::cli

int main(int argc, char** argv) {
  attn::cli::install_interrupt_handlers();
  try {
    return attn::cli::run(argc, argv);
  } catch (const std::bad_alloc&) {
    attn::cli::write_error("out of memory");
  } catch (const std::exception& error) {
    attn::cli::write_error(error.what());
  }
  return attn::cli::kBadInput;
}
