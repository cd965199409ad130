// The questions of pack `core`, drawn once, and ways to walk over them.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "attn/error.h"
#include "attn/operation.h"
#include "core/contains.h"
#include "golden/questions/question.h"

namespace attn {

inline const questions::QuestionSet& core() {
  static const questions::QuestionSet set = questions::core_questions();
  return set;
}

inline const questions::Question& named(const std::string& id) {
  for (const questions::Question& question : core().questions) {
    if (question.id == id) return question;
  }
  throw Error("no question " + id);
}

inline bool has_flag(const questions::Question& question, const std::string& flag) {
  return contains(question.flags, flag);
}

inline std::vector<const questions::Question*> valid_ones() {
  std::vector<const questions::Question*> valid;
  for (const questions::Question& question : core().questions) {
    if (question.result == CaseResult::kValid) valid.push_back(&question);
  }
  return valid;
}

inline std::vector<const questions::Question*> valid_attention() {
  std::vector<const questions::Question*> some;
  for (const questions::Question* question : valid_ones()) {
    if (std::holds_alternative<AttentionOp>(question->operation)) some.push_back(question);
  }
  return some;
}

template <class Row>
void for_each_row(const AttentionOp& op, const Row& row) {
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
    for (std::int64_t h = 0; h < op.num_heads(); ++h) {
      for (std::int64_t i = 0; i < op.query_len(r); ++i) row(r, h, i);
    }
  }
}

}  // namespace attn
