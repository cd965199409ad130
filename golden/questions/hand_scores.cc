// What happens to a score: scales of stored codes, soft cap.
#include <cmath>

#include "golden/questions/hand_attention.h"
#include "golden/questions/hand_questions.h"

namespace attn::questions {
namespace {

// Stored keys 2, 0 with scale ln(3)/2: weights 3 and 1. Stored values 1, -1 with scale 1/2: out
// 1/4.
void add_scales_of_codes(std::vector<Question>& to) {
  struct Layout {
    const char* id;
    KvLayout layout;
    const char* name;
  };
  const Layout layouts[] = {{"H18-paged", KvLayout::kPaged, "fp8 keys and values, paged"},
                            {"H18-paged_packed", KvLayout::kPacked, "fp8 keys and values, packed"},
                            {"H18-varlen", KvLayout::kVarlen, "fp8 keys and values, varlen"}};
  for (const Layout& layout : layouts) {
    HandAttention hand;
    hand.requests = {{1, 2, {3}}};
    hand.num_blocks = 4;
    hand.unused_entry = 0;
    hand.layout = layout.layout;
    hand.kv_dtype = DType::kF8E4M3FN;
    hand.query = first_dim(constant(1.0));
    hand.key = first_dim(listed({2.0, 0.0}));
    hand.value = listed({1.0, -1.0});
    hand.unaddressed_key = hand.unaddressed_value = [](std::int64_t) { return 0.0; };
    to.push_back(hand_attention({layout.id,
                                 "quantised",
                                 layout.name,
                                 "scales that one entry point leaves out: 0.76 without both, 1/2 "
                                 "without that of the values",
                                 {},
                                 {"kv_scales"}},
                                hand));
    KvCacheView& kv = attention_of(to.back()).kv;
    kv.k_scale = keep_floats(to.back(), {std::log(3.0) / 2.0});
    kv.v_scale = keep_floats(to.back(), {0.5});
  }
}

// One row; the scores are the keys.
HandAttention scores(const std::vector<double>& keys) {
  HandAttention hand;
  hand.requests = {{1, static_cast<std::int64_t>(keys.size()), {3}}};
  hand.num_blocks = 4;
  hand.query = first_dim(constant(1.0));
  hand.key = first_dim(listed(keys));
  hand.value = listed({1.0, 2.0, 4.0});
  return hand;
}

void add_soft_caps(std::vector<Question>& to) {
  to.push_back(hand_attention({"H19a",
                               "softcap",
                               "cap of 50 on scores up to 10000",
                               "a tanh of two exponentials overflows to NaN",
                               {"poisoned"},
                               {"softcap_saturates"}},
                              scores({4500.0, 10000.0, -10000.0})));
  attention_of(to.back()).logits_soft_cap = 50.0;

  to.push_back(hand_attention({"H19b",
                               "softcap",
                               "cap of 5 on scores of both signs",
                               "a cap left out gives the first value alone",
                               {"poisoned"},
                               {}},
                              scores({500.0, -500.0, 0.0})));
  attention_of(to.back()).logits_soft_cap = 5.0;

  HandAttention hand = scores({0.0, 0.0});
  hand.requests[0].query_len = 2;
  hand.value = listed({2.0, 1000.0});
  to.push_back(hand_attention({"H19c",
                               "softcap",
                               "cap of 1 on a prompt of two",
                               "a cap after the mask gives the hidden key a weight",
                               {"poisoned"},
                               {"softcap_before_mask"}},
                              hand));
  attention_of(to.back()).logits_soft_cap = 1.0;
}

}  // namespace

void add_hand_scores(std::vector<Question>& to) {
  add_scales_of_codes(to);
  add_soft_caps(to);
}

}  // namespace attn::questions
