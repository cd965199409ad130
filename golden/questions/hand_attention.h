// An attention problem written down by hand: lengths, blocks, and a formula for each tensor.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/special_values.h"
#include "golden/questions/draw.h"
#include "golden/questions/fill.h"
#include "golden/questions/question.h"
#include "golden/questions/question_text.h"

namespace attn::questions {

using HandElement = std::function<double(const Place&)>;

HandElement constant(double value);
HandElement listed(std::vector<double> by_position);  // the same in every dim
HandElement first_dim(HandElement element);           // 0 in all others
double power_of_two(const Place& at);                 // 2^position
double own_position(const Place& at);
double arbitrary(const Place& at);  // a multiple of 1/8 in [-0.75, 0.75]

// logs({1, 2, 6}) = ln 1, ln 2, ln 6 in dim 0: keys that give these weights to a query of 1 there.
HandElement logs(const std::vector<double>& weights);

struct HandRequest {
  std::int64_t query_len;
  std::int64_t seq_len;
  std::vector<std::int32_t> blocks;  // physical, in the order of the positions; paged only
};

// Scale 1, causal, float32 query; key and value of one size.
struct HandAttention {
  std::vector<HandRequest> requests;
  HandElement query = constant(0.0);
  HandElement key = arbitrary;
  HandElement value = power_of_two;
  std::int64_t num_heads = 1;
  std::int64_t num_kv_heads = 1;
  std::int64_t head_size = 16;
  KvLayout layout = KvLayout::kPaged;
  DType kv_dtype = DType::kF32;
  std::int64_t block_size = 4;
  std::int64_t num_blocks = 0;  // paged
  std::int32_t unused_entry = kUnusedBlock;
  // What slots hold that no request addresses, by block.
  std::function<double(std::int64_t)> unaddressed_key = [](std::int64_t) { return kNaN; };
  std::function<double(std::int64_t)> unaddressed_value = [](std::int64_t) { return kNaN; };
};

// `where` is "by hand".
Question hand_attention(QuestionText text, const HandAttention& hand);

// The operation of a question that hand_attention() made.
AttentionOp& attention_of(Question& question);

// f32 [values], kept by the question.
TensorView keep_floats(Question& question, const std::vector<double>& values);

}  // namespace attn::questions
