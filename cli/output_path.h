#pragma once

#include <string>

namespace attn::cli {

// Throws Error when `output` is the file or folder that is read: an answer must not replace its
// question.
void expect_other_place(const std::string& input, const std::string& output);

}  // namespace attn::cli
