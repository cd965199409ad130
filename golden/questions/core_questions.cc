#include <utility>

#include "golden/questions/attention_questions.h"
#include "golden/questions/hand_questions.h"
#include "golden/questions/other_questions.h"
#include "golden/questions/question.h"

namespace attn::questions {

QuestionSet core_questions() {
  QuestionSet set;
  set.questions = ask(attention_entries());
  append(hand_questions(), set.questions);
  append(other_questions(), set.questions);
  order_by_id(set.questions);
  set.relations = batch_relations();
  for (CaseRelation& relation : hand_relations()) set.relations.push_back(std::move(relation));
  return set;
}

}  // namespace attn::questions
