#include "golden/error_source.h"

#include <algorithm>

namespace attn::golden {

std::string single_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  return text;
}

}  // namespace attn::golden
