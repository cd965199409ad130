#include "golden/questions/other_questions.h"

#include <algorithm>
#include <utility>

#include "golden/questions/question_text.h"

namespace attn::questions {

Question drawn_question(std::string id, std::string name, std::string scenario,
                        std::vector<std::string> rulings, const Source& source) {
  std::string variant = id.substr(0, id.find('-'));
  return question_of({std::move(id),
                      std::move(variant),
                      std::move(name),
                      std::move(scenario),
                      {},
                      std::move(rulings)},
                     where(source));
}

std::vector<Question> other_questions() {
  std::vector<Question> all;
  add_differential_questions(all);
  add_mla_questions(all);
  add_mla_sparse_questions(all);
  add_indexer_questions(all);
  add_merge_questions(all);
  add_cache_write_questions(all);
  add_mla_cache_write_questions(all);
  add_invalid_questions(all);
  std::sort(all.begin(), all.end(),
            [](const Question& a, const Question& b) { return a.id < b.id; });
  return all;
}

}  // namespace attn::questions
