// Images in a prompt: ranges whose tokens see one another both ways. Scores 0, V[k] = 2^k.
#include "golden/questions/hand_attention.h"
#include "golden/questions/hand_questions.h"

namespace attn::questions {
namespace {

// One request; pairs of inclusive ends.
void set_ranges(Question& question, const std::vector<double>& ends) {
  const auto pairs = static_cast<std::int64_t>(ends.size() / 2);
  attention_of(question).mask.mm_prefix_ranges =
      question.memory.keep(HostTensor(DType::kI32, {1, pairs, 2}, ends));
}

void add_two_images(std::vector<Question>& to) {
  HandAttention hand;
  hand.requests = {{9, 9, {5, 1, 2}}};
  hand.num_blocks = 6;
  to.push_back(
      hand_attention({"H03",
                      "mm_prefix",
                      "two images in one prompt",
                      "a flag for images instead of a range for each: the first image sees "
                      "the second",
                      {"poisoned"},
                      {"mm_separate_groups"}},
                     hand));
  set_ranges(to.back(), {1, 3, 5, 7});
}

void add_image_longer_than_the_window(std::vector<Question>& to) {
  for (const bool clamped : {true, false}) {
    HandAttention hand;
    hand.requests = {{8, 8, {1, 2}}};
    hand.num_blocks = 5;
    to.push_back(hand_attention(
        {clamped ? "H04-clamped" : "H04-unclamped",
         "mm_prefix",
         clamped ? "image longer than the window, clamped" : "image longer than the window",
         clamped ? "a range that is longer than the window still counts; the window cuts its past"
                 : "a range that is longer than the window still counts as a whole",
         {"poisoned"},
         {clamped ? "mm_clamp" : "mm_noclamp"}},
        hand));
    set_ranges(to.back(), {1, 6});
    MaskSpec& mask = attention_of(to.back()).mask;
    mask.window_left = 3 - 1;
    mask.mm_prefix_clamp = clamped;
  }
}

}  // namespace

void add_hand_ranges(std::vector<Question>& to) {
  add_two_images(to);
  add_image_longer_than_the_window(to);
}

}  // namespace attn::questions
