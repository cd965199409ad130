// The global flags of every command, and how a command ends.
#pragma once

#include <stdexcept>
#include <string>

namespace attn::cli {

inline constexpr int kPassed = 0;
inline constexpr int kFailed = 1;
inline constexpr int kBadInput = 2;  // by exception: attn::Error
inline constexpr int kNothingRan = 3;

struct GlobalOptions {
  bool json = false;
  bool quiet = false;
  bool require_gpu = false;
  std::string replay;  // shell-quoted command line
};

}  // namespace attn::cli
