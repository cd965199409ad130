// Differences of two softmaxes over neighbouring heads.
#include <utility>

#include "golden/questions/differential_setup.h"
#include "golden/questions/other_questions.h"

namespace attn::questions {

Question differential_question(std::string id, std::string name, std::string scenario,
                               const AttentionSetup& setup) {
  Question question = drawn_question(std::move(id), std::move(name), std::move(scenario),
                                     {"differential_pairs"}, setup.source);
  DrawnAttention attention = draw_attention(setup);
  question.memory = std::move(attention.memory);
  DifferentialOp op;
  op.attention = attention.op;
  op.lambda = 0.75;
  op.lambda_init = 0.25;
  question.operation = op;
  return question;
}

void add_norm(Question& question, const AttentionSetup& setup) {
  const std::int64_t pair = 2 * (setup.head_size_v != 0 ? setup.head_size_v : setup.head_size);
  auto& op = std::get<DifferentialOp>(question.operation);
  op.lambda = 0.5;
  op.lambda_init = 0.8F;
  op.eps = 1e-5F;
  op.norm_weight =
      question.memory.keep(drawn(DType::kF32, {pair}, [&](const std::vector<std::int64_t>& at) {
        const Words words = words_at(setup.source, RandomTensor::kDiffNormWeight, {.dim = at[0]});
        return 1.0 + uniform(words, DType::kF32) / 4.0;
      }));
}

void add_differential_questions(std::vector<Question>& to) {
  to.push_back(differential_question(
      "differential-plain", "two pairs of heads on one pair of KV heads, without norm",
      "heads paired across the middle instead of with their neighbour; values of one KV head",
      {.source = {Family::kBell, 0x3e01},
       .requests = {{3, 5}, {1, 4}},
       .num_heads = 4,
       .num_kv_heads = 2,
       .head_size = 8}));

  const AttentionSetup setup = {.source = {Family::kBell, 0x3e02},
                                .requests = {{2, 6}, {4, 4}},
                                .num_heads = 4,
                                .num_kv_heads = 4,
                                .head_size = 8,
                                .query_dtype = DType::kBF16,
                                .kv_dtype = DType::kBF16};
  to.push_back(differential_question(
      "differential-norm", "RMS norm with weights over the pair of values",
      "a norm over one head, or the factor 1 - lambda_init before it", setup));
  add_norm(to.back(), setup);
}

}  // namespace attn::questions
