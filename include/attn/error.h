// The one exception of the library: a precondition of the caller is broken.
#pragma once

#include <stdexcept>
#include <string>

namespace attn {

// The text is one line and names the field, the index and the value that are wrong, e.g.
// `block_table[1,3] is 9, outside [0, 8)`. What a backend merely cannot do is not an error but a
// list of reasons (Backend::supports).
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what) : std::runtime_error(what) {}
};

}  // namespace attn
