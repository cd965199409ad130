#pragma once

#include <string>

namespace attn {

// The bytes of a file. Throws Error when it cannot be read.
std::string text_of_file(const std::string& path);

}  // namespace attn
