#include "core/text_file.h"

#include <fmt/core.h>

#include <fstream>
#include <iterator>

#include "attn/error.h"

namespace attn {

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(fmt::format("{} cannot be read", path));
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) throw Error(fmt::format("{} cannot be read", path));
  return text;
}

}  // namespace attn
