// What a failed property prints: the command that repeats it.
#pragma once

#include <string>

namespace attn::property_tests {

// "Suite.Name" of the running test.
std::string test_name();

// "replay: RC_PARAMS=\"...\" PROGRAM --gtest_filter=Suite.Name # smallest", of the running program
// and test; without a comment when nothing is known about the case.
std::string replay_line(const std::string& smallest = "");

}  // namespace attn::property_tests
