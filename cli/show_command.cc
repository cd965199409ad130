#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/document.h"
#include "cli/show_case.h"

namespace attn::cli {

Command add_show_command(CLI::App& parser, const GlobalOptions& options) {
  CLI::App* app =
      parser.add_subcommand("show", "The mask of a case, as text or as a picture")->fallthrough();
  auto path = std::make_shared<std::string>();
  app->add_option("--case", *path, "case file")->required();
  const std::shared_ptr<ShowFlags> flags = add_show_flags(*app);
  app->add_option("--backend", flags->backend, "COMPOSITE(A,B): also which child answers")
      ->check(refuse_empty);
  return {app, [&options, path, flags] {
            return show_case(options, document("show", options), *path, *flags);
          }};
}

}  // namespace attn::cli
