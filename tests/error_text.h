// What an Error says.
#pragma once

#include <functional>
#include <string>

#include "attn/error.h"

namespace attn {

// What the Error says that `body` throws; empty when it throws none.
inline std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace attn
