// Merges of partial states: number of parts, bases, empty parts.
#include <cmath>
#include <utility>

#include "golden/questions/other_questions.h"

namespace attn::questions {
namespace {

enum class State : std::uint8_t { kLive, kMinusInfinity, kPlusInfinity };
using StateOf = State (*)(std::int64_t part, std::int64_t token, std::int64_t head);

struct MergeSetup {
  Source source = {};
  std::int64_t num_parts = 2;
  std::int64_t num_tokens = 4;
  std::int64_t num_heads = 2;
  std::int64_t head_size_v = 8;
  DType out_dtype = DType::kF32;
  bool base_2 = false;
  StateOf state = [](std::int64_t, std::int64_t, std::int64_t) { return State::kLive; };
  double (*lse_shift)(std::int64_t part) = [](std::int64_t) { return 0.0; };
};

// The out of an empty part is NaN.
HostTensor draw_outs(const MergeSetup& setup) {
  return drawn(setup.out_dtype,
               {setup.num_parts, setup.num_tokens, setup.num_heads, setup.head_size_v},
               [&](const std::vector<std::int64_t>& at) {
                 if (setup.state(at[0], at[1], at[2]) != State::kLive) return std::nan("");
                 const Place place = {at[0], at[1], at[2], at[3]};
                 return bell(words_at(setup.source, RandomTensor::kOutParts, place));
               });
}

HostTensor draw_lses(const MergeSetup& setup) {
  return drawn(DType::kF32, {setup.num_parts, setup.num_heads, setup.num_tokens},
               [&](const std::vector<std::int64_t>& at) {
                 const Place place = {at[0], at[2], at[1], 0};
                 switch (setup.state(place.request, place.position, place.head)) {
                   case State::kMinusInfinity:
                     return -HUGE_VAL;
                   case State::kPlusInfinity:
                     return HUGE_VAL;
                   default:
                     return setup.lse_shift(at[0]) +
                            4.0 * bell(words_at(setup.source, RandomTensor::kLseParts, place));
                 }
               });
}

Question merge_question(std::string id, std::string name, std::string scenario,
                        std::vector<std::string> rulings, const MergeSetup& setup) {
  Question question = drawn_question(std::move(id), std::move(name), std::move(scenario),
                                     std::move(rulings), setup.source);
  MergeStatesOp op;
  op.out_parts = question.memory.keep(draw_outs(setup));
  op.lse_parts = question.memory.keep(draw_lses(setup));
  op.lse_base_2 = setup.base_2;
  question.operation = op;
  return question;
}

// A third of the states, none of token 3; the first part of token 0 is among them.
State sometimes_empty(std::int64_t part, std::int64_t token, std::int64_t head) {
  if (token == 3 || (part + token + head) % 3 != 0) return State::kLive;
  return part % 2 == 0 ? State::kMinusInfinity : State::kPlusInfinity;
}

// Head 1 of token 1 has no live part, all the others one.
State mostly_empty(std::int64_t part, std::int64_t token, std::int64_t head) {
  const bool none = token == 1 && head == 1;
  if (!none && part == (token + head) % 3) return State::kLive;
  return (part + head) % 2 == 0 ? State::kMinusInfinity : State::kPlusInfinity;
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
