// Latent attention: dense absorbed and expanded, sparse, against plain loops over the definition.
#include <gtest/gtest.h>

#include <cmath>

#include "attn/error.h"
#include "attn/random.h"
#include "core/special_values.h"
#include "tests/operation_answer.h"
#include "tests/random_values.h"

namespace attn {
namespace {

constexpr std::int64_t kLatent = 6;
constexpr std::int64_t kRope = 3;
constexpr std::int64_t kNope = 4;
constexpr std::int64_t kLatentHeads = 3;
constexpr std::int64_t kValueSize = 5;

// Two requests: 2 rows of 5 tokens, 1 row of 3; 4 blocks of 2 slots, block ids out of order.
struct LatentProblem {
  explicit LatentProblem(MlaForm form) {
    op.form = form;
    op.kv_lora_rank = kLatent;
    op.qk_rope_head_dim = kRope;
    op.qk_nope_head_dim = kNope;
    op.query_start_loc = pool.values(DType::kI32, {3}, {0, 2, 3});
    op.seq_lens = pool.values(DType::kI32, {2}, {5, 3});
    op.block_table = pool.values(DType::kI32, {2, 3}, {4, 0, 2, 3, 1, 0});
    op.kv_cache = pool.values(DType::kF32, {5, 2, kLatent + kRope},
                              bells(7, 5 * 2 * (kLatent + kRope), RandomTensor::kKey));
    op.scale = 0.375;
    op.w_uk = pool.values(DType::kF32, {kLatent, kLatentHeads, kNope},
                          bells(7, kLatent * kLatentHeads * kNope, RandomTensor::kWUk));
    op.w_uv = pool.values(DType::kF32, {kLatent, kLatentHeads, kValueSize},
                          bells(7, kLatent * kLatentHeads * kValueSize, RandomTensor::kWUv));
    expanded_query =
        pool.values(DType::kF64, {3, kLatentHeads, kNope + kRope},
                    bells(7, 3 * kLatentHeads * (kNope + kRope), RandomTensor::kQuery));
    op.query = form == MlaForm::kExpanded ? expanded_query : absorbed_query();
    if (form == MlaForm::kAbsorbed) op.w_uk = op.w_uv = TensorView{};
  }

  // q_nope times w_uk, head by head, and the rope part as it is.
  TensorView absorbed_query() {
    std::vector<double> q;
    for (std::int64_t t = 0; t < 3; ++t) {
      for (std::int64_t h = 0; h < kLatentHeads; ++h) {
        for (std::int64_t l = 0; l < kLatent; ++l) {
          double sum = 0.0;
          for (std::int64_t p = 0; p < kNope; ++p) {
            sum += value_at(expanded_query, t, h, p) * value_at(op.w_uk, l, h, p);
          }
          q.push_back(sum);
        }
        for (std::int64_t r = 0; r < kRope; ++r) {
          q.push_back(value_at(expanded_query, t, h, kNope + r));
        }
      }
    }
    return pool.values(DType::kF64, {3, kLatentHeads, kLatent + kRope}, q);
  }

  TensorPool pool;
  TensorView expanded_query;
  MlaOp op;
};

// Softmax of an absorbed row over listed slots (block * 2 + offset); the definition, in plain
// loops.
struct Row {
  std::vector<double> out;
  double lse;
};
Row absorbed_row(const MlaOp& op, std::int64_t token, std::int64_t head,
                 const std::vector<std::int64_t>& slots, double sink = -kInf) {
  double sum = std::exp(sink);
  Row row{std::vector<double>(kLatent, 0.0), 0.0};
  for (const std::int64_t slot : slots) {
    double s = 0.0;
    for (std::int64_t d = 0; d < kLatent + kRope; ++d) {
      s += value_at(op.query, token, head, d) * value_at(op.kv_cache, slot / 2, slot % 2, d);
    }
    const double weight = std::exp(op.scale * s);
    sum += weight;
    for (std::int64_t d = 0; d < kLatent; ++d) {
      row.out[static_cast<std::size_t>(d)] += weight * value_at(op.kv_cache, slot / 2, slot % 2, d);
    }
  }
  for (double& x : row.out) x /= sum;
  row.lse = std::log(sum);
  return row;
}

void expect_row(const OperationAnswer& answer, std::int64_t token, std::int64_t head,
                const Row& expected) {
  const TensorView out = answer.view("out");
  for (std::int64_t d = 0; d < kLatent; ++d) {
    EXPECT_NEAR(value_at(out, token, head, d), expected.out[static_cast<std::size_t>(d)], 1e-13);
  }
  EXPECT_NEAR(value_at(answer.view("lse"), head, token), expected.lse, 1e-13);
}

TEST(Mla, AbsorbedEqualsItsDefinition) {
  const LatentProblem p(MlaForm::kAbsorbed);
  const OperationAnswer answer{p.op};
  // Slots of request 0: blocks 4, 0, 2; of request 1: blocks 3, 1. Causal, bottom-right.
  for (std::int64_t head = 0; head < kLatentHeads; ++head) {
    expect_row(answer, 0, head, absorbed_row(p.op, 0, head, {8, 9, 0, 1}));
    expect_row(answer, 1, head, absorbed_row(p.op, 1, head, {8, 9, 0, 1, 4}));
    expect_row(answer, 2, head, absorbed_row(p.op, 2, head, {6, 7, 2}));
  }
}

TEST(Mla, ExpandedEqualsAbsorbedTimesWuv) {
  const LatentProblem absorbed(MlaForm::kAbsorbed);
  const LatentProblem expanded(MlaForm::kExpanded);
  const OperationAnswer latent{absorbed.op};
  const OperationAnswer answer{expanded.op};
  for (std::int64_t t = 0; t < 3; ++t) {
    for (std::int64_t h = 0; h < kLatentHeads; ++h) {
      for (std::int64_t v = 0; v < kValueSize; ++v) {
        double expected = 0.0;
        for (std::int64_t l = 0; l < kLatent; ++l) {
          expected += value_at(latent.view("out"), t, h, l) * value_at(expanded.op.w_uv, l, h, v);
        }
        EXPECT_NEAR(value_at(answer.view("out"), t, h, v), expected, 1e-12);
      }
      EXPECT_NEAR(value_at(answer.view("lse"), h, t), value_at(latent.view("lse"), h, t), 1e-12);
    }
  }
}

TEST(Mla, PartsOfExecGiveTheSameAnswer) {
  LatentProblem p(MlaForm::kAbsorbed);
  const OperationAnswer whole{p.op};
  p.op.exec.kv_chunk = 2;
  const OperationAnswer parts{p.op};
  const std::vector<double> a = whole.values("out");
  const std::vector<double> b = parts.values("out");
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-13);
}

TEST(Mla, ScaleOfThePlainCacheMultipliesBothParts) {
  LatentProblem p(MlaForm::kAbsorbed);
  const OperationAnswer plain{p.op};
  p.op.k_scale = p.pool.values(DType::kF32, {1}, {2.0});
  p.op.scale /= 2.0;
  const OperationAnswer scaled{p.op};
  const std::vector<double> a = plain.values("out");
  const std::vector<double> b = scaled.values("out");
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(2.0 * a[i], b[i], 1e-13);
}

MlaSparseOp sparse(LatentProblem& p, TopkIndexSpace space, const std::vector<double>& indices) {
  MlaSparseOp op;
  op.mla = p.op;
  op.index_space = space;
  op.topk_indices = p.pool.values(DType::kI32, {3, 3}, indices);
  return op;
}

TEST(MlaSparse, ListsGoThroughTheBlockTableAndCountDuplicates) {
  LatentProblem p(MlaForm::kAbsorbed);
  const OperationAnswer answer{sparse(p, TopkIndexSpace::kRequest, {4, -1, 0, 3, 3, -1, -1, 2, 0})};
  for (std::int64_t head = 0; head < kLatentHeads; ++head) {
    expect_row(answer, 0, head, absorbed_row(p.op, 0, head, {4, 8}));
    expect_row(answer, 1, head, absorbed_row(p.op, 1, head, {1, 1}));
    expect_row(answer, 2, head, absorbed_row(p.op, 2, head, {2, 6}));
  }
}

TEST(MlaSparse, SlotsNeedNoTableAndLengthsKeepAPrefix) {
  LatentProblem p(MlaForm::kAbsorbed);
  MlaSparseOp op = sparse(p, TopkIndexSpace::kSlot, {9, 3, 5, 0, 1, 2, 7, 8, 6});
  op.topk_lens = p.pool.values(DType::kI32, {3}, {2, 3, 1});
  op.sinks = p.pool.values(DType::kF32, {3}, {0.5, 1.0, -1.0});
  const OperationAnswer answer{op};
  const double sinks[] = {0.5, 1.0, -1.0};
  for (std::int64_t head = 0; head < kLatentHeads; ++head) {
    expect_row(answer, 0, head, absorbed_row(p.op, 0, head, {9, 3}, sinks[head]));
    expect_row(answer, 1, head, absorbed_row(p.op, 1, head, {0, 1, 2}, sinks[head]));
    expect_row(answer, 2, head, absorbed_row(p.op, 2, head, {7}, sinks[head]));
  }
}

TEST(MlaSparse, AnEmptyListAnswersZero) {
  LatentProblem p(MlaForm::kAbsorbed);
  const OperationAnswer answer{sparse(p, TopkIndexSpace::kRequest, {-1, -1, -1, 0, 0, 0, 0, 0, 0})};
  EXPECT_EQ(value_at(answer.view("out"), 0, 0, 0), 0.0);
  EXPECT_EQ(value_at(answer.view("lse"), 0, 0), -kInf);
}

TEST(MlaSparse, RejectsAnIndexOutsideTheRequest) {
  LatentProblem p(MlaForm::kAbsorbed);
  try {
    AttentionProblem{sparse(p, TopkIndexSpace::kRequest, {0, 0, 5, 0, 0, 0, 0, 0, 0})};
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "topk_indices[0,2] is 5, neither -1 nor in [0, 5)");
  }
}

}  // namespace
}  // namespace attn
