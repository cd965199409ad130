#pragma once

#include <string>

#include "cli/options.h"

namespace attn::cli {

// Replays a decision table; writes the answers to `answers` unless it is empty. The exit code.
int select_table(const GlobalOptions& options, const std::string& table,
                 const std::string& answers);

}  // namespace attn::cli
