// Heads in groups, and heads longer than a tile.
#include <cmath>
#include <string>

#include "golden/questions/hand_attention.h"
#include "golden/questions/hand_questions.h"

namespace attn::questions {
namespace {

// Keys 1 and queries head/2 in dim 0: lse = head/2 + ln S, another number for every row and head.
void add_lse_that_differs_everywhere(std::vector<Question>& to) {
  for (const std::int64_t splits : {1, 2}) {
    HandAttention hand;
    hand.requests = {{1, 3, {3}}, {1, 5, {5, 4}}};
    hand.num_blocks = 6;
    hand.num_heads = 4;
    hand.num_kv_heads = 2;
    hand.query = first_dim([](const Place& at) { return static_cast<double>(at.head) / 2.0; });
    hand.key = first_dim(constant(1.0));
    hand.value = own_position;
    const std::string count = std::to_string(splits);
    to.push_back(hand_attention(
        {"H15-splits" + count,
         splits == 1 ? "causal" : "split_kv",
         "an lse for every row and head, " + count + (splits == 1 ? " split" : " splits"),
         "rows and heads of a group swapped, or only the first head of a "
         "group written",
         {"poisoned"},
         {"lse_heads_by_tokens"}},
        hand));
    attention_of(to.back()).exec.num_splits = splits;
  }
}

// The values of KV head j are j + 1.
void add_groups_of_seven(std::vector<Question>& to) {
  for (const std::int64_t query_len : {1, 5}) {
    HandAttention hand;
    hand.requests = {{query_len, 9, {5, 1, 2}}};
    hand.num_blocks = 6;
    hand.num_heads = 28;
    hand.num_kv_heads = 4;
    hand.head_size = 8;
    hand.value = [](const Place& at) { return static_cast<double>(at.head + 1); };
    to.push_back(hand_attention({query_len == 1 ? "H20a-decode" : "H20a-q5",
                                 "heads",
                                 "28 heads on 4, " + std::to_string(query_len) +
                                     (query_len == 1 ? " new token" : " new tokens"),
                                 "a group of seven taken for a power of two",
                                 {"poisoned"},
                                 {"gqa_floor"}},
                                hand));
  }
}

// Only the last dim of query and key says anything: weights 3 and 1, out 3 in every dim.
void add_last_dims(std::vector<Question>& to) {
  for (const std::int64_t size : {80, 192, 512}) {
    const auto last_dim = [size](std::vector<double> by_position) -> HandElement {
      return [size, values = std::move(by_position)](const Place& at) {
        return at.dim == size - 1 ? values[static_cast<std::size_t>(at.position)] : 0.0;
      };
    };
    HandAttention hand;
    hand.requests = {{1, 2, {3}}};
    hand.num_blocks = 4;
    hand.block_size = 2;
    hand.head_size = size;
    hand.query = last_dim({0.0, 1.0});
    hand.key = last_dim({std::log(3.0), 0.0});
    hand.value = listed({4.0, 0.0});
    to.push_back(hand_attention({"H20b-d" + std::to_string(size),
                                 "heads",
                                 "head size " + std::to_string(size) + ", the last dim decides",
                                 "dims beyond the first tile left out: 2 instead of 3",
                                 {"poisoned"},
                                 {"every_dim"}},
                                hand));
  }
}

}  // namespace

void add_hand_heads(std::vector<Question>& to) {
  add_lse_that_differs_everywhere(to);
  add_groups_of_seven(to);
  add_last_dims(to);
}

}  // namespace attn::questions
