// What must be rejected: one broken precondition each, everything else in order.
#include <utility>
#include <variant>

#include "golden/questions/hand_attention.h"
#include "golden/questions/latent_setup.h"
#include "golden/questions/other_questions.h"

namespace attn::questions {
namespace {

// Named after the field that is wrong.
Question invalid(std::string field, std::string name, std::string scenario) {
  Question question = question_of({"invalid-" + std::move(field),
                                   "invalid",
                                   std::move(name),
                                   std::move(scenario),
                                   {},
                                   {"rejects"}},
                                  "by hand");
  question.result = CaseResult::kInvalid;
  return question;
}

HandAttention two_rows_of_six_keys() {
  HandAttention hand;
  hand.requests = {{2, 6, {1, 2}}};
  hand.num_blocks = 4;
  hand.head_size = 8;
  return hand;
}

Question invalid_attention(std::string field, std::string name, std::string scenario,
                           const HandAttention& hand) {
  Question question = invalid(std::move(field), std::move(name), std::move(scenario));
  Question valid = hand_attention({}, hand);
  question.operation = valid.operation;
  question.memory = std::move(valid.memory);
  return question;
}

void add_addresses(std::vector<Question>& to) {
  to.push_back(invalid_attention("block_table", "a block of -1 where the request has keys",
                                 "-1 wraps to the last block", two_rows_of_six_keys()));
  attention_of(to.back()).kv.block_table =
      to.back().memory.keep(HostTensor(DType::kI32, {1, 2}, {1.0, -1.0}));

  to.push_back(invalid_attention("block_table-width", "a table of one block for six keys",
                                 "the entry behind the row's end is read", two_rows_of_six_keys()));
  attention_of(to.back()).kv.block_table =
      to.back().memory.keep(HostTensor(DType::kI32, {1, 1}, {1.0}));
}

void add_sizes(std::vector<Question>& to) {
  HandAttention heads = two_rows_of_six_keys();
  heads.num_heads = 5;
  heads.num_kv_heads = 2;
  to.push_back(invalid_attention("num_heads", "5 heads on 2 KV heads",
                                 "the last head reads a KV head that is not there", heads));

  HandAttention two = two_rows_of_six_keys();
  two.requests = {{1, 3, {1}}, {1, 2, {2}}};
  to.push_back(invalid_attention("query_start_loc", "starts that decrease",
                                 "a negative number of rows", two));
  attention_of(to.back()).query_start_loc = to.back().memory.keep(int_tensor({0, 3, 2}));
}

void add_scale(std::vector<Question>& to) {
  HandAttention hand = two_rows_of_six_keys();
  hand.kv_dtype = DType::kF8E4M3FN;
  hand.unaddressed_key = hand.unaddressed_value = [](std::int64_t) { return 0.0; };
  to.push_back(invalid_attention("k_scale", "a scale of keys that is NaN",
                                 "every output is NaN and nobody says why", hand));
  KvCacheView& kv = attention_of(to.back()).kv;
  kv.k_scale = keep_floats(to.back(), {kNaN});
}

// Ones in every row; only slot -1 stands for a token that is not written.
void add_slot(std::vector<Question>& to) {
  to.push_back(invalid("slot_mapping", "a slot of -2", "-2 skipped as -1 is, or written in front"));
  TensorStore& memory = to.back().memory;
  const auto ones = [&](const std::vector<std::int64_t>& shape) {
    return memory.keep(drawn(DType::kF32, shape, [](const auto&) { return 1.0; }));
  };
  CacheWriteOp op;
  op.key = ones({3, 1, 4});
  op.value = ones({3, 1, 4});
  op.slot_mapping = memory.keep(HostTensor(DType::kI64, {3}, {5.0, -1.0, -2.0}));
  op.cache.layout = KvLayout::kPaged;
  op.cache.key = ones({2, 4, 1, 4});
  op.cache.value = ones({2, 4, 1, 4});
  to.back().operation = op;
}

void add_index(std::vector<Question>& to) {
  to.push_back(invalid("topk_indices", "a position that the request does not have",
                       "a slot of the last block that holds no key is read"));
  const Source source = {Family::kExactLane, 0x4101};
  to.back().where = where(source);
  TensorStore& memory = to.back().memory;
  MlaSparseOp op;
  op.mla = draw_mla({.source = source, .query_lens = {1}, .seq_lens = {6}}, memory);
  op.topk_indices = memory.keep(HostTensor(DType::kI32, {1, 4}, {5.0, 0.0, -1.0, 6.0}));
  to.back().operation = op;
}

void add_range(std::vector<Question>& to) {
  to.push_back(invalid("k_end", "a range that ends behind the last key",
                       "logits of keys that are not there"));
  TensorStore& memory = to.back().memory;
  IndexerOp op;
  op.query = memory.keep(HostTensor(DType::kF32, {2, 1, 2}, {1.0, 0.0, 0.0, 1.0}));
  op.key = memory.keep(HostTensor(DType::kF32, {3, 2}, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}));
  op.weights = memory.keep(HostTensor(DType::kF32, {2, 1}, {1.0, 1.0}));
  op.k_start = memory.keep(int_tensor({0, 0}));
  op.k_end = memory.keep(int_tensor({3, 4}));
  to.back().operation = op;
}

}  // namespace

void add_invalid_questions(std::vector<Question>& to) {
  add_addresses(to);
  add_sizes(to);
  add_scale(to);
  add_slot(to);
  add_index(to);
  add_range(to);
}

}  // namespace attn::questions
