// What is told about a question beside its tensors.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "golden/questions/question.h"

namespace attn::questions {

struct QuestionText {
  std::string id;
  std::string variant;
  std::string name;
  std::string scenario;
  std::vector<std::string> flags;
  std::vector<std::string> rulings;
};

// Without operation.
inline Question question_of(QuestionText text, std::string_view where) {
  Question question;
  question.id = std::move(text.id);
  question.variant = std::move(text.variant);
  question.name = std::move(text.name);
  question.scenario = std::move(text.scenario);
  question.where = where;
  question.flags = std::move(text.flags);
  question.rulings = std::move(text.rulings);
  return question;
}

}  // namespace attn::questions
