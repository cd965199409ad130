// A sink is one more term of the softmax, once, whatever the splits.
#include <cmath>
#include <string>

#include "golden/questions/hand_attention.h"
#include "golden/questions/hand_questions.h"

namespace attn::questions {
namespace {

// Weights 1, 2, 3, 6 and a sink of 4: out 3/2, lse ln 16 with the sink, ln 12 without.
void add_sink_over_splits(std::vector<Question>& to) {
  struct Form {
    std::int64_t splits;
    bool lse_includes_sink;
  };
  for (const Form& form : {Form{1, true}, Form{1, false}, Form{2, true}, Form{4, false}}) {
    const std::string splits = std::to_string(form.splits);
    HandAttention hand;
    hand.requests = {{1, 4, {3}}};
    hand.num_blocks = 4;
    hand.query = first_dim(constant(1.0));
    hand.key = logs({1.0, 2.0, 3.0, 6.0});
    hand.value = listed({6.0, 3.0, 2.0, 1.0});
    to.push_back(
        hand_attention({"H10a-splits" + splits + (form.lse_includes_sink ? "-with" : "-without"),
                        "sinks",
                        "sink over " + splits + (form.splits == 1 ? " split" : " splits") +
                            (form.lse_includes_sink ? ", lse with it" : ", lse without it"),
                        "a sink that is never read gives 2, one that every split adds 6/5",
                        {"poisoned"},
                        {form.lse_includes_sink ? "lse_includes_sink" : "lse_excludes_sink",
                         "sink_in_denominator"}},
                       hand));
    AttentionOp& op = attention_of(to.back());
    op.sinks = keep_floats(to.back(), {std::log(4.0)});
    op.lse_includes_sink = form.lse_includes_sink;
    op.exec.num_splits = form.splits;
  }
}

void add_sink_when_the_first_split_is_empty(std::vector<Question>& to) {
  HandAttention hand;
  hand.requests = {{1, 8, {1, 2}}};
  hand.num_blocks = 5;
  hand.value = constant(1.0);
  to.push_back(hand_attention({"H10b",
                               "sinks",
                               "sink when the window empties the first split",
                               "the first split and the first split with a key both add the sink",
                               {"poisoned"},
                               {"sink_once_over_splits"}},
                              hand));
  AttentionOp& op = attention_of(to.back());
  op.sinks = keep_floats(to.back(), {0.0});
  op.mask.window_left = 3 - 1;
  op.exec.num_splits = 2;
}

void add_sink_of_minus_infinity(std::vector<Question>& to) {
  HandAttention hand;
  hand.requests = {{1, 2, {1}}};
  hand.num_blocks = 4;
  hand.num_heads = 2;
  hand.value = listed({1.0, 3.0});
  to.push_back(hand_attention({"H10c",
                               "sinks",
                               "one head with a sink, one with -inf",
                               "a sink per KV head, or one of -inf that makes NaN",
                               {"poisoned"},
                               {"sink_minus_inf_is_none", "sink_per_query_head"}},
                              hand));
  attention_of(to.back()).sinks = keep_floats(to.back(), {std::log(2.0), -kInf});
}

}  // namespace

void add_hand_sinks(std::vector<Question>& to) {
  add_sink_over_splits(to);
  add_sink_when_the_first_split_is_empty(to);
  add_sink_of_minus_infinity(to);
}

}  // namespace attn::questions
