// A prefix that requests share, computed once.
#include <cmath>

#include "golden/questions/hand_attention.h"
#include "golden/questions/hand_questions.h"

namespace attn::questions {

// Weights 1, 2, 1, 4 of the prefix in block 1; then 8 for the first request, 2 and 6 for the
// second: out 2, lse ln 16; 3, ln 10 and 15/4, ln 16.
void add_hand_cascades(std::vector<Question>& to) {
  HandAttention hand;
  hand.requests = {{1, 5, {1, 2}}, {2, 6, {1, 3}}};
  hand.num_blocks = 6;
  hand.query = first_dim(constant(1.0));
  const auto by_request = [](const HandElement& first, const HandElement& second) -> HandElement {
    return [first, second](const Place& at) { return (at.request == 0 ? first : second)(at); };
  };
  hand.key = by_request(logs({1, 2, 1, 4, 8}), logs({1, 2, 1, 4, 2, 6}));
  hand.value = by_request(listed({8, 4, 0, 2, 1}), listed({8, 4, 0, 2, 3, 5}));
  to.push_back(hand_attention({"H23",
                               "cascade",
                               "two requests with a common prefix of one block",
                               "a wrong lse in the merge of prefix and suffix",
                               {"poisoned"},
                               {"cascade_equals_plain"}},
                              hand));
  ExecSpec& exec = attention_of(to.back()).exec;
  exec.has_common_prefix = true;
  exec.common_prefix_len = 4;
}

}  // namespace attn::questions
