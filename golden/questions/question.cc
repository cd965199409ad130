#include "golden/questions/question.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "attn/error.h"

namespace attn::questions {

void append(std::vector<Question> from, std::vector<Question>& to) {
  for (Question& question : from) to.push_back(std::move(question));
}

void order_by_id(std::vector<Question>& questions) {
  std::sort(questions.begin(), questions.end(),
            [](const Question& a, const Question& b) { return a.id < b.id; });
  const auto same = std::adjacent_find(questions.begin(), questions.end(),
                                       [](const auto& a, const auto& b) { return a.id == b.id; });
  if (same != questions.end()) throw Error(fmt::format("two questions have the id {}", same->id));
}

}  // namespace attn::questions
