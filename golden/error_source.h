// Messages about files: what is wrong is said below, in which file it is said here.
#pragma once

#include <string>
#include <utility>

#include "attn/error.h"

namespace attn::golden {

// `text` with control bytes replaced, so that a message stays one line.
std::string single_line(std::string text);

// Runs `body`; an Error leaves it with "<source>: " before its text.
template <class Body>
auto with_source(const std::string& source, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    throw Error(single_line(source) + ": " + error.what());
  }
}

}  // namespace attn::golden
