#include "cli/output_path.h"

#include <fmt/core.h>

#include <filesystem>

#include "attn/error.h"

namespace attn::cli {

void expect_other_place(const std::string& input, const std::string& output) {
  std::error_code ignored;  // one that is not there yet is another place
  if (std::filesystem::equivalent(input, output, ignored)) {
    throw Error(fmt::format("{}: cannot write: it is the input {}", output, input));
  }
}

}  // namespace attn::cli
