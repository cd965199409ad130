// An exception that vLLM raises, as data: its Python type and its text.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace attn {

// Where vLLM raises, so do we; bad input of our own is attn::Error.
class VllmError : public std::runtime_error {
 public:
  VllmError(std::string type, const std::string& text)
      : std::runtime_error(text), type_(std::move(type)) {}

  const std::string& type() const { return type_; }  // "ValueError"

 private:
  std::string type_;
};

}  // namespace attn
