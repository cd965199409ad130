#include "golden/questions/extended_questions.h"

#include <fmt/core.h>

namespace attn::questions {

std::string extended_id(std::string_view variant, std::string_view what, Family family) {
  return fmt::format("{}-x-{}-{}", variant, what, name(family));
}

QuestionSet extended_questions() {
  QuestionSet set;
  set.questions = ask(family_entries());
  append(ask(size_entries()), set.questions);
  append(extended_operations(), set.questions);
  order_by_id(set.questions);
  set.relations = family_relations();
  return set;
}

}  // namespace attn::questions
