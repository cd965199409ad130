// Which keys a row sees: windows and several new tokens. q = 0, so all scores are 0, and V[k] =
// 2^k: the output times the number of visible keys is a bitmask of them.
#include <string>

#include "golden/questions/hand_attention.h"
#include "golden/questions/hand_questions.h"

namespace attn::questions {
namespace {

void add_window_that_counts_the_rows_own_key(std::vector<Question>& to) {
  struct Width {
    std::int64_t window;
    const char* id;
    const char* scenario;
    std::vector<std::string> rulings;
  };
  const Width widths[] = {
      {1, "H01-w1", "a row that sees its own key alone", {"window_counts_self"}},
      {3, "H01-w3-paged", "a bound of 3 instead of 2 lets a fourth key in", {"window_counts_self"}},
      {6, "H01-w6", "a window as long as the prompt hides nothing", {}},
      {7, "H01-w7", "a window longer than the prompt hides nothing", {}}};
  for (const Width& width : widths) {
    HandAttention hand;
    hand.requests = {{6, 6, {1, 2}}};
    hand.num_blocks = 5;
    to.push_back(
        hand_attention({width.id,
                        "sliding_window",
                        "window of " + std::to_string(width.window) + " over a prompt of 6",
                        width.scenario,
                        {"poisoned"},
                        width.rulings},
                       hand));
    attention_of(to.back()).mask.window_left = width.window - 1;
  }
}

void add_window_with_context(std::vector<Question>& to) {
  HandAttention hand;
  hand.requests = {{3, 9, {5, 1, 2}}};
  hand.num_blocks = 6;
  to.push_back(hand_attention(
      {"H02-paged",
       "sliding_window",
       "window of 4 over a chunk with context",
       "the edge of the window taken with the wrong sign shows only when there is context",
       {"poisoned"},
       {"bottom_right", "window_counts_self"}},
      hand));
  attention_of(to.back()).mask.window_left = 4 - 1;
}

void add_rows_that_verify_drafts(std::vector<Question>& to) {
  HandAttention one;
  one.requests = {{3, 7, {1, 2}}};
  one.num_blocks = 5;
  to.push_back(hand_attention({"H21a",
                               "causal",
                               "three new tokens of one request",
                               "rows taken for single tokens see the drafts behind them",
                               {"poisoned"},
                               {"bottom_right"}},
                              one));
  HandAttention mixed;
  mixed.requests = {{3, 7, {6, 1}}, {1, 4, {2}}, {3, 9, {5, 3, 7}}};
  mixed.num_blocks = 9;
  to.push_back(hand_attention({"H21b",
                               "causal",
                               "requests with three, one and three new tokens",
                               "rows taken for single tokens see the drafts behind them",
                               {"poisoned"},
                               {"bottom_right"}},
                              mixed));
}

}  // namespace

void add_hand_windows(std::vector<Question>& to) {
  add_window_that_counts_the_rows_own_key(to);
  add_window_with_context(to);
  add_rows_that_verify_drafts(to);
}

}  // namespace attn::questions
