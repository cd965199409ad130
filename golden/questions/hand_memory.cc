// Rows with nothing to attend to, and memory that belongs to nobody.
#include <string>

#include "golden/questions/hand_attention.h"
#include "golden/questions/hand_questions.h"

namespace attn::questions {
namespace {

void add_rows_that_see_nothing(std::vector<Question>& to) {
  HandAttention longer;
  longer.requests = {{4, 2, {1}}};
  longer.num_blocks = 4;
  to.push_back(hand_attention({"H11a",
                               "empty",
                               "more new tokens than keys",
                               "a mask of a large negative number leaves rows before position 0 a "
                               "finite lse and an average of keys they must not see",
                               {"poisoned", "q_len_gt_seq_len"},
                               {"empty_row_zero", "q_len_gt_S"}},
                              longer));
  HandAttention none;
  none.requests = {{1, 3, {1}}, {1, 0, {}}, {1, 2, {2}}};
  none.num_blocks = 5;
  to.push_back(hand_attention({"H11b",
                               "empty",
                               "a request without keys between two others",
                               "a kernel that returns early leaves the row as it was",
                               {"poisoned", "seq_len_zero"},
                               {"empty_row_zero", "seq_len_zero"}},
                              none));
}

struct Poison {
  const char* name;
  double key;
  double value;
  const char* text;
};

constexpr Poison kNoPoison = {"zero", 0.0, 0.0, "nothing unusual"};
constexpr Poison kPoisons[] = {{"nan", kNaN, kNaN, "NaN"},
                               {"nank", kNaN, 0.0, "NaN among the keys"},
                               {"nanv", 0.0, kNaN, "NaN among the values"},
                               {"ninf", -kInf, -kInf, "-inf"},
                               {"pinf", kInf, kInf, "+inf"}};

// Block 0, where unused table entries point, and the rest of the last block hold the poison.
Question poisoned_question(bool decode, const Poison& poison) {
  const bool clean = std::string(poison.name) == kNoPoison.name;
  HandAttention hand;
  hand.requests = {{decode ? 1 : 13, 13, {7, 2, 9, 5}}};
  hand.num_blocks = 10;
  hand.unused_entry = 0;
  hand.value = own_position;
  const auto in_block = [](double value) {
    return [value](std::int64_t block) { return block == 0 || block == 5 ? value : 0.0; };
  };
  hand.unaddressed_key = in_block(poison.key);
  hand.unaddressed_value = in_block(poison.value);
  const std::string phase = decode ? "decode" : "prefill";
  const std::string clean_variant = decode ? "split_kv" : "causal";
  Question question = hand_attention(
      {"H16-" + phase + "-" + poison.name,
       clean ? clean_variant : "poisoned",
       phase + " with " + poison.text + " outside the sequence",
       clean ? "what its poisoned copies must give, bit for bit"
             : "a weight of 0 does not hide what it is multiplied by; unused table entries point "
               "at block 0",
       clean ? std::vector<std::string>{} : std::vector<std::string>{"poisoned"},
       {"masked_never_read"}},
      hand);
  if (decode) attention_of(question).exec.num_splits = 2;
  return question;
}

constexpr std::size_t kNumPrefillPoisons = 1;  // more would only repeat decode

CaseRelation same_rows(const std::string& phase, std::int64_t rows, std::size_t num_poisons) {
  CaseRelation relation;
  relation.about = "memory outside the sequence is never read";
  relation.rows.push_back({"H16-" + phase + "-" + kNoPoison.name, 0, rows});
  for (std::size_t i = 0; i < num_poisons; ++i) {
    relation.rows.push_back({"H16-" + phase + "-" + kPoisons[i].name, 0, rows});
  }
  return relation;
}

}  // namespace

void add_hand_memory(std::vector<Question>& to) {
  add_rows_that_see_nothing(to);
  to.push_back(poisoned_question(true, kNoPoison));
  for (const Poison& poison : kPoisons) to.push_back(poisoned_question(true, poison));
  to.push_back(poisoned_question(false, kNoPoison));
  for (std::size_t i = 0; i < kNumPrefillPoisons; ++i) {
    to.push_back(poisoned_question(false, kPoisons[i]));
  }
}

std::vector<CaseRelation> hand_relations() {
  return {same_rows("decode", 1, std::size(kPoisons)),
          same_rows("prefill", 13, kNumPrefillPoisons)};
}

}  // namespace attn::questions
