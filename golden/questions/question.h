// A case of a pack before it is answered: what is asked, in memory of its own.
#pragma once

#include <string>
#include <vector>

#include "attn/case_file.h"
#include "attn/host_tensor.h"
#include "attn/operation.h"

namespace attn::questions {

struct Question {
  std::string id;        // <variant>-<what>[-<n>], or the id of a known fault; never reused
  std::string variant;   // one of the table of variants
  std::string name;      // what is asked, in a few words
  std::string scenario;  // which mistake the answer shows
  std::string where;     // "<family> seed <hex>", "by hand", or the id of a known fault
  std::vector<std::string> flags;
  std::vector<std::string> rulings;
  CaseResult result = CaseResult::kValid;

  Operation operation;  // looks into `memory`; not validated
  TensorStore memory;
};

struct QuestionSet {
  std::vector<Question> questions;
  std::vector<CaseRelation> relations;
};

// Every question of pack `core`, ordered by id.
QuestionSet core_questions();

// Every question of pack `extended`, ordered by id: the settings of pack `core` with every family
// of data, and sweeps over sizes.
QuestionSet extended_questions();

void append(std::vector<Question> from, std::vector<Question>& to);

// Throws Error when two have the same id.
void order_by_id(std::vector<Question>& questions);

}  // namespace attn::questions
