// Partial states of one token: which parts count, and in which base their lse is.
#include <cmath>
#include <utility>

#include "golden/questions/hand_attention.h"
#include "golden/questions/hand_questions.h"

namespace attn::questions {
namespace {

struct Part {
  double out;  // in every dim
  double lse;
};

// One token, [parts][heads], head size 4.
Question merge_question(QuestionText text, bool base_2,
                        const std::vector<std::vector<Part>>& parts) {
  Question question = question_of(std::move(text), "by hand");
  const auto num_parts = static_cast<std::int64_t>(parts.size());
  const auto num_heads = static_cast<std::int64_t>(parts[0].size());
  HostTensor outs(DType::kF32, {num_parts, 1, num_heads, 4});
  HostTensor lses(DType::kF32, {num_parts, num_heads, 1});
  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (std::size_t h = 0; h < parts[p].size(); ++h) {
      for (std::int64_t d = 0; d < 4; ++d) outs.set(parts[p][h].out, p, 0, h, d);
      lses.set(parts[p][h].lse, p, h, 0);
    }
  }
  MergeStatesOp op;
  op.out_parts = question.memory.keep(std::move(outs));
  op.lse_parts = question.memory.keep(std::move(lses));
  op.lse_base_2 = base_2;
  question.operation = op;
  return question;
}

void add_empty_parts(std::vector<Question>& to) {
  const std::vector<std::string> rulings = {"merge_empty_side", "merge_natural"};
  const Part live = {3.0, std::log(2.0)};
  const Part dead = {kNaN, -kInf};
  to.push_back(merge_question(
      {"H12-both-empty", "merge", "two empty parts", "-inf minus -inf makes NaN", {}, rulings},
      false, {{{0.0, -kInf}}, {{0.0, -kInf}}}));
  to.push_back(merge_question({"H12-dead-nan-left",
                               "merge",
                               "an empty part of NaN first",
                               "a weight of 0 does not hide NaN",
                               {},
                               rulings},
                              false, {{dead}, {live}}));
  to.push_back(merge_question({"H12-dead-nan-right",
                               "merge",
                               "an empty part of NaN last",
                               "a weight of 0 does not hide NaN",
                               {},
                               rulings},
                              false, {{live}, {dead}}));
  to.push_back(merge_question({"H12-plus-inf",
                               "merge",
                               "a part marked empty by +inf",
                               "the part that is empty takes all the weight",
                               {},
                               rulings},
                              false, {{{1.0, std::log(3.0)}}, {{7.0, kInf}}}));
}

void add_bases(std::vector<Question>& to) {
  const char* scenario = "an lse read in the other base shifts the answer a little, silently";
  to.push_back(merge_question({"H13-2",
                               "merge",
                               "weights 1 and 3, lse in base 2",
                               scenario,
                               {},
                               {"merge_base2", "merge_empty_side"}},
                              true, {{{0.0, 0.0}}, {{4.0, std::log2(3.0)}}}));
  to.push_back(merge_question({"H13-e",
                               "merge",
                               "weights 1 and 3, natural lse",
                               scenario,
                               {},
                               {"merge_empty_side", "merge_natural"}},
                              false, {{{0.0, 0.0}}, {{4.0, std::log(3.0)}}}));
  to.push_back(merge_question({"H13-three-2",
                               "merge",
                               "weights 5, 1 and 2, lse in base 2",
                               scenario,
                               {},
                               {"merge_base2", "merge_empty_side"}},
                              true, {{{8.0, std::log2(5.0)}}, {{0.0, 0.0}}, {{4.0, 1.0}}}));
}

// A file holds dense parts; who places them in padded memory sees a wrong stride by the heads.
void add_heads_that_differ(std::vector<Question>& to) {
  const double ln_3 = std::log(3.0);
  to.push_back(merge_question({"H14",
                               "merge",
                               "two heads, another value in each",
                               "one stride used for both parts mixes their heads",
                               {},
                               {}},
                              false, {{{1.0, 0.0}, {2.0, 0.0}}, {{10.0, ln_3}, {20.0, ln_3}}}));
}

}  // namespace

void add_hand_merges(std::vector<Question>& to) {
  add_empty_parts(to);
  add_bases(to);
  add_heads_that_differ(to);
}

}  // namespace attn::questions
