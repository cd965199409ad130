// Questions of the operation `attention`, one entry each.
#pragma once

#include <string>
#include <vector>

#include "golden/questions/question.h"
#include "golden/questions/setup.h"

namespace attn::questions {

struct AttentionEntry {
  std::string id;
  std::string name;
  std::string scenario;
  std::vector<std::string> rulings = {};
  AttentionSetup setup = {};
};

// Draws every entry; the variant is the part of the id before the first '-'. Flags follow from what
// the setup has.
std::vector<Question> ask(const std::vector<AttentionEntry>& entries);

}  // namespace attn::questions
