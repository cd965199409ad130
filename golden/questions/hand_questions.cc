#include "golden/questions/hand_questions.h"

#include <algorithm>

namespace attn::questions {

std::vector<Question> hand_questions() {
  std::vector<Question> all;
  add_hand_windows(all);
  add_hand_ranges(all);
  add_hand_sinks(all);
  add_hand_memory(all);
  add_hand_merges(all);
  add_hand_scores(all);
  add_hand_heads(all);
  add_hand_cascades(all);
  for (Question& question : all) question.where = question.id.substr(0, 3);  // the fault
  std::sort(all.begin(), all.end(),
            [](const Question& a, const Question& b) { return a.id < b.id; });
  return all;
}

}  // namespace attn::questions
