// Merges of partial states: number of parts, bases, empty parts.
#include <utility>

#include "golden/questions/merge_setup.h"
#include "golden/questions/other_questions.h"

namespace attn::questions {
namespace {

Question merge_question(std::string id, std::string name, std::string scenario,
                        std::vector<std::string> rulings, const MergeSetup& setup) {
  Question question = drawn_question(std::move(id), std::move(name), std::move(scenario),
                                     std::move(rulings), setup.source);
  question.operation = draw_merge(setup, question.memory);
  return question;
}

// Head 1 of token 1 has no live part, all the others one.
MergeState mostly_empty(std::int64_t part, std::int64_t token, std::int64_t head) {
  const bool none = token == 1 && head == 1;
  if (!none && part == (token + head) % 3) return MergeState::kLive;
  return (part + head) % 2 == 0 ? MergeState::kMinusInfinity : MergeState::kPlusInfinity;
}

void add_few_parts(std::vector<Question>& to) {
  to.push_back(merge_question(
      "merge-one_part", "a single part", "a part alone is the answer, bit for bit in its own type",
      {"merge_natural"}, {.source = {Family::kBell, 0x3d01}, .num_parts = 1}));
  to.push_back(merge_question("merge-one_part-base2", "a single part, lse in base 2",
                              "an lse handed on in the base it came in", {"merge_base2"},
                              {.source = {Family::kBell, 0x3d02}, .num_parts = 1, .base_2 = true}));
  to.push_back(merge_question(
      "merge-far_apart", "two bf16 parts, the first lse 2000 above the second",
      "weights from e^lse without its maximum: infinity over infinity", {"merge_natural"},
      {.source = {Family::kBell, 0x3d03},
       .out_dtype = DType::kBF16,
       .lse_shift = [](std::int64_t part) { return part == 0 ? 1000.0 : -1000.0; }}));
}

void add_five_parts(std::vector<Question>& to) {
  const std::vector<std::string> empty = {"merge_empty_side", "dead_out_not_read"};
  to.push_back(merge_question(
      "merge-five_parts", "five parts, some of them empty",
      "+inf taken for weight, NaN of an empty part let through",
      {"merge_natural", "merge_empty_side", "dead_out_not_read"},
      {.source = {Family::kBell, 0x3d04}, .num_parts = 5, .state = sometimes_empty}));
  to.push_back(merge_question("merge-five_parts-base2", "five parts in base 2, some of them empty",
                              "a base used for the weights and not for the lse",
                              {"merge_base2", "merge_empty_side", "dead_out_not_read"},
                              {.source = {Family::kBell, 0x3d05},
                               .num_parts = 5,
                               .base_2 = true,
                               .state = sometimes_empty}));
  to.push_back(
      merge_question("merge-mostly_empty", "one live part or none among three",
                     "-inf minus -inf; an empty union that is not 0 and -inf", empty,
                     {.source = {Family::kBell, 0x3d06}, .num_parts = 3, .state = mostly_empty}));
}

}  // namespace

void add_merge_questions(std::vector<Question>& to) {
  add_few_parts(to);
  add_five_parts(to);
}

}  // namespace attn::questions
