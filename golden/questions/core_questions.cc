#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "attn/error.h"
#include "golden/questions/attention_questions.h"
#include "golden/questions/hand_questions.h"
#include "golden/questions/other_questions.h"
#include "golden/questions/question.h"

namespace attn::questions {
namespace {

void append(std::vector<Question> from, std::vector<Question>& to) {
  for (Question& question : from) to.push_back(std::move(question));
}

void expect_unique_ids(const std::vector<Question>& by_id) {
  const auto same = std::adjacent_find(by_id.begin(), by_id.end(),
                                       [](const auto& a, const auto& b) { return a.id == b.id; });
  if (same != by_id.end()) throw Error(fmt::format("two questions have the id {}", same->id));
}

}  // namespace

QuestionSet core_questions() {
  QuestionSet set;
  for (auto* questions : {base_mask_questions, window_questions, range_questions, score_questions,
                          sink_questions, head_questions, quantised_questions, batch_questions,
                          exec_questions, hand_questions, other_questions}) {
    append(questions(), set.questions);
  }
  std::sort(set.questions.begin(), set.questions.end(),
            [](const Question& a, const Question& b) { return a.id < b.id; });
  expect_unique_ids(set.questions);
  set.relations = batch_relations();
  for (CaseRelation& relation : hand_relations()) set.relations.push_back(std::move(relation));
  return set;
}

}  // namespace attn::questions
