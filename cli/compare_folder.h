#pragma once

#include <string>

#include "cli/options.h"

namespace attn::cli {

struct FolderComparison {
  std::string cases_dir;
  std::string actual_dir;  // empty: the answers stored in the cases
  std::string contract;    // name or file; empty: of each answer
  bool strict = false;
  bool policies = false;  // they are printed
};

// Judges the answers of a folder of cases against REFERENCE: answers of actual_dir under the
// contract that `compare --case` would take, stored ones under that of the row's precision. The
// plain verdict beside it allows the row's tolerance plus what the arithmetic of the answer's type
// may add. With answers of its own also checks the folder's relations. Returns the exit code.
int compare_folder(const GlobalOptions& options, const FolderComparison& asked);

}  // namespace attn::cli
