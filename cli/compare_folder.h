#pragma once

#include <string>

#include "cli/options.h"

namespace attn::cli {

// Judges the answers of a folder of cases against REFERENCE, within each row's tolerance plus what
// the arithmetic of the answer's type may add: those in `actual_dir`, or those stored in the cases
// when it is empty. With answers of its own also checks the folder's relations. Returns the exit
// code.
int compare_folder(const GlobalOptions& options, const std::string& cases_dir,
                   const std::string& actual_dir);

}  // namespace attn::cli
