// The indexer against plain loops over its definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attn/error.h"
#include "core/special_values.h"
#include "tests/operation_answer.h"

namespace attn {
namespace {

// Two tokens, two heads of size 2, three keys.
struct IndexerProblem {
  IndexerProblem() {
    op.query = pool.values(DType::kF32, {2, 2, 2}, {1, 2, -1, 0, 3, -1, 0.5, 0.5});
    op.key = pool.values(DType::kF32, {3, 2}, {1, 1, -2, 0, 0, 4});
    op.weights = pool.values(DType::kF32, {2, 2}, {2, 3, -1, 4});
    op.k_start = pool.values(DType::kI32, {2}, {0, 1});
    op.k_end = pool.values(DType::kI32, {2}, {3, 2});
  }
  TensorPool pool;
  IndexerOp op;
};

TEST(Indexer, SumsRectifiedProductsInsideTheRange) {
  const IndexerProblem p;
  const OperationAnswer answer{p.op};
  // Token 0: q.k = (3, -2, 8) and (-1, 2, 0). Token 1: key 1 only, q.k = -6 and -1.
  EXPECT_EQ(answer.values("logits"), (std::vector<double>{6, 6, 16, -kInf, 0, -kInf}));
}

TEST(Indexer, ScalesKeysOneByOne) {
  IndexerProblem p;
  p.op.k_scale = p.pool.values(DType::kF32, {3, 1}, {2, 1, -1});
  const OperationAnswer answer{p.op};
  EXPECT_EQ(answer.values("logits"), (std::vector<double>{12, 6, 0, -kInf, 0, -kInf}));
}

TEST(Indexer, KeepsNaN) {
  IndexerProblem p;
  p.op.key = p.pool.values(DType::kF32, {3, 2}, {1, 1, kNaN, 0, 0, 4});
  const std::vector<double> logits = OperationAnswer(Operation{p.op}).values("logits");
  EXPECT_TRUE(std::isnan(logits[1]));
  EXPECT_EQ(logits[2], 16.0);
}

TEST(Indexer, RejectsARangeOutsideTheKeys) {
  IndexerProblem p;
  p.op.k_end = p.pool.values(DType::kI32, {2}, {3, 4});
  try {
    AttentionProblem{p.op};
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "k_end[1] is 4, outside [0, 3]");
  }
}

}  // namespace
}  // namespace attn
