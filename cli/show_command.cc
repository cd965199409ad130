#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/document.h"
#include "cli/show_case.h"

namespace attn::cli {

Command add_show_command(const Parser& parser, const GlobalOptions& options) {
  const Parser command = parser.command("show", "The mask of a case, as text or as a picture");
  auto path = std::make_shared<std::string>();
  command.text("--case", *path, "case file").required();
  const std::shared_ptr<ShowFlags> flags = add_show_flags(command);
  command.text("--backend", flags->backend, "COMPOSITE(A,B): also which child answers").not_empty();
  return {command, [&options, path, flags] {
            return show_case(options, document("show", options), *path, *flags);
          }};
}

}  // namespace attn::cli
