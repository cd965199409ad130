// Differential attention against plain loops over its definition.
#include <gtest/gtest.h>

#include <cmath>

#include "attn/error.h"
#include "attn/random.h"
#include "tests/operation_answer.h"
#include "tests/random_values.h"

namespace attn {
namespace {

constexpr std::int64_t kTokens = 4;
constexpr std::int64_t kHeads = 8;
constexpr std::int64_t kKvHeads = 4;
constexpr std::int64_t kSize = 3;
constexpr std::int64_t kValue = 2;

// One request of 4 tokens, causal; 4 query pairs on 2 KV pairs.
struct DifferentialProblem {
  DifferentialProblem() {
    AttentionOp& a = op.attention;
    a.query_start_loc = pool.values(DType::kI32, {2}, {0, kTokens});
    a.seq_lens = pool.values(DType::kI32, {1}, {kTokens});
    a.kv.kv_start_loc = pool.values(DType::kI32, {2}, {0, kTokens});
    a.query = pool.values(DType::kF32, {kTokens, kHeads, kSize},
                          bells(3, kTokens * kHeads * kSize, RandomTensor::kQuery));
    a.kv.key = pool.values(DType::kF32, {kTokens, kKvHeads, kSize},
                           bells(3, kTokens * kKvHeads * kSize, RandomTensor::kKey));
    a.kv.value = pool.values(DType::kF32, {kTokens, kKvHeads, kValue},
                             bells(3, kTokens * kKvHeads * kValue, RandomTensor::kValue));
    a.scale = 0.5;
    a.mask.causal = true;
    op.lambda = 0.75;
    op.lambda_init = 0.25;
  }

  // Softmax of query head `head` with the keys of `kv_head`, times the values of KV pair `pair`.
  std::vector<double> softmax(std::int64_t token, std::int64_t head, std::int64_t kv_head,
                              std::int64_t pair) const {
    const AttentionOp& a = op.attention;
    std::vector<double> out(2 * kValue, 0.0);
    double sum = 0.0;
    for (std::int64_t k = 0; k <= token; ++k) {
      double s = 0.0;
      for (std::int64_t d = 0; d < kSize; ++d) {
        s += value_at(a.query, token, head, d) * value_at(a.kv.key, k, kv_head, d);
      }
      const double weight = std::exp(a.scale * s);
      sum += weight;
      for (std::int64_t d = 0; d < 2 * kValue; ++d) {
        out[static_cast<std::size_t>(d)] +=
            weight * value_at(a.kv.value, k, 2 * pair + d / kValue, d % kValue);
      }
    }
    for (double& x : out) x /= sum;
    return out;
  }

  std::vector<double> expected(std::int64_t token, std::int64_t pair) const {
    const std::int64_t kv_pair = pair / (kHeads / kKvHeads);
    const std::vector<double> a0 = softmax(token, 2 * pair, 2 * kv_pair, kv_pair);
    const std::vector<double> a1 = softmax(token, 2 * pair + 1, 2 * kv_pair + 1, kv_pair);
    std::vector<double> y;
    double squares = 0.0;
    for (std::size_t d = 0; d < a0.size(); ++d) {
      y.push_back(a0[d] - op.lambda * a1[d]);
      squares += y[d] * y[d];
    }
    const double root = std::sqrt(squares / static_cast<double>(y.size()) + op.eps);
    for (std::size_t d = 0; d < y.size(); ++d) {
      if (op.norm_weight.present()) {
        y[d] *= value_at(op.norm_weight, static_cast<std::int64_t>(d)) / root;
      }
      y[d] *= 1.0 - op.lambda_init;
    }
    return y;
  }

  TensorPool pool;
  DifferentialOp op;
};

void expect_definition(const DifferentialProblem& p) {
  const OperationAnswer answer{p.op};
  for (std::int64_t t = 0; t < kTokens; ++t) {
    for (std::int64_t pair = 0; pair < kHeads / 2; ++pair) {
      const std::vector<double> expected = p.expected(t, pair);
      for (std::int64_t d = 0; d < 2 * kValue; ++d) {
        EXPECT_NEAR(value_at(answer.view("out"), t, pair, d), expected[static_cast<std::size_t>(d)],
                    1e-13)
            << "token " << t << " pair " << pair << " element " << d;
      }
    }
  }
}

TEST(Differential, SubtractsTheSecondSoftmax) { expect_definition(DifferentialProblem()); }

TEST(Differential, NormalisesByTheRootMeanSquare) {
  DifferentialProblem p;
  p.op.norm_weight = p.pool.values(DType::kF32, {2 * kValue}, {1, 0.5, -2, 3});
  p.op.eps = 1e-5;
  expect_definition(p);
}

TEST(Differential, RejectsOddHeads) {
  DifferentialProblem p;
  p.op.attention.query = p.pool.zeros(DType::kF32, {kTokens, 3, kSize});
  p.op.attention.kv.key = p.pool.zeros(DType::kF32, {kTokens, 1, kSize});
  p.op.attention.kv.value = p.pool.zeros(DType::kF32, {kTokens, 1, kValue});
  EXPECT_THROW(AttentionProblem{p.op}, Error);
}

}  // namespace
}  // namespace attn
