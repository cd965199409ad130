// The mask of a case, as text or as a picture.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/document.h"
#include "cli/parser.h"

namespace attn::cli {

struct ShowFlags {
  std::optional<std::int64_t> request;
  std::int64_t head = 0;
  std::string svg;
  std::string backend;  // a composite: also says which child answers; empty = not asked
};

// Declares them on a command; they are filled by parsing.
std::shared_ptr<ShowFlags> add_show_flags(const Parser& command);

// Prints the mask of the case in `path`; with --json as `doc`, which is the start of the document.
// Returns the exit code.
int show_case(const GlobalOptions& options, Json doc, const std::string& path,
              const ShowFlags& flags);

}  // namespace attn::cli
