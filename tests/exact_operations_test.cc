// Exact answers to the operations around attention. Correctly rounded answers to two forms of one
// question are the same bytes, so most tests pose it as operation attention too.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "attn/error.h"
#include "core/special_values.h"
#include "tests/exact_answers.h"

namespace attn {
namespace {

void expect_same_bytes(const ExactAnswer& a, const ExactAnswer& b,
                       const std::vector<const char*>& names) {
  for (const char* name : names) {
    EXPECT_FALSE(a.codes(name).empty()) << name;
    EXPECT_TRUE(a.codes(name) == b.codes(name)) << name;
  }
}
const std::vector<const char*> kStates = {"out",      "lse",    "cond_pv", "cond_pav",
                                          "cond_puv", "cond_v", "cond_row"};

// Latent rows [3 blocks, 2 slots, 2 + 1], one request of 5 tokens with 2 rows, 2 heads.
struct LatentProblem {
  LatentProblem() {
    op.query = pool.values(DType::kF32, {2, 2, 3}, {1, 2, 3, -1, 0.5, 2, 0.25, 1, -1, 2, 1, 0.5});
    op.query_start_loc = pool.values(DType::kI32, {2}, {0, 2});
    op.seq_lens = pool.values(DType::kI32, {1}, {5});
    op.kv_cache =
        pool.values(DType::kF32, {3, 2, 3},
                    {.5, 1, -1, 2, .25, .75, 1, -.5, .125, 1.5, -2, .5, kNaN, 9, 9, -.5, 1, 2});
    op.block_table = pool.values(DType::kI32, {1, 3}, {1, 0, 2});
    op.scale = 0.3;
    op.kv_lora_rank = 2;
    op.qk_rope_head_dim = 1;
    // Slot order of the tokens: 2, 3, 0, 1, 4; so that token 4, block 2 slot 0, is NaN.
  }

  // The same as attention: one KV head, rows as keys, latents as values.
  AttentionOp as_attention() const {
    AttentionOp a;
    a.query = op.query;
    a.query_start_loc = op.query_start_loc;
    a.seq_lens = op.seq_lens;
    a.kv.layout = KvLayout::kPaged;
    a.kv.key = op.kv_cache;
    a.kv.key.rank = 4;
    a.kv.key.shape[3] = a.kv.key.shape[2];
    a.kv.key.stride_bytes[3] = a.kv.key.stride_bytes[2];
    a.kv.key.shape[2] = 1;
    a.kv.value = slice(a.kv.key, 3, 0, 2);
    a.kv.block_table = op.block_table;
    a.kv.k_scale = a.kv.v_scale = op.k_scale;
    a.scale = op.scale;
    a.mask.causal = op.causal;
    return a;
  }

  TensorPool pool;
  MlaOp op;
};

TEST(ExactMla, AbsorbedIsAttentionOverLatentRows) {
  LatentProblem p;
  p.op.k_scale = p.pool.values(DType::kF32, {1}, {1.3});
  const ExactAnswer answer{p.op};
  expect_same_bytes(answer, ExactAnswer{p.as_attention()}, kStates);
  EXPECT_TRUE(std::isnan(answer.values("out").back()));    // row 1 sees token 4
  EXPECT_FALSE(std::isnan(answer.values("out").front()));  // row 0 does not
  p.op.causal = false;
  EXPECT_TRUE(std::isnan(ExactAnswer{p.op}.values("out").front()));
}

TEST(ExactMla, ExpandedIsAttentionOverProjectedRows) {
  // Positive, so that the magnitudes of products sum to the magnitude of their sum; integers, so
  // that projected keys and values are float32 numbers.
  LatentProblem p;
  p.op.form = MlaForm::kExpanded;
  p.op.qk_nope_head_dim = 2;
  p.op.kv_cache =
      p.pool.values(DType::kF32, {1, 5, 3}, {1, 2, 3, 2, 5, 1, 3, 1, 4, 4, 4, 1, 2, 2, 6});
  p.op.block_table = p.pool.values(DType::kI32, {1, 1}, {0});
  const std::vector<double> w_uk = {1, 3, 2, 1, 4, 1, 3, 2};              // [2, 2 heads, 2]
  const std::vector<double> w_uv = {1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1};  // [2, 2 heads, 3]
  p.op.w_uk = p.pool.values(DType::kF32, {2, 2, 2}, w_uk);
  p.op.w_uv = p.pool.values(DType::kF32, {2, 2, 3}, w_uv);
  AttentionOp a = p.as_attention();
  std::vector<double> keys, values;
  for (std::int64_t k = 0; k < 5; ++k) {
    const auto c = [&](std::int64_t l) { return value_at(p.op.kv_cache, 0, k, l); };
    for (std::size_t h = 0; h < 2; ++h) {
      for (std::size_t i = 0; i < 2; ++i) {
        keys.push_back(c(0) * w_uk[h * 2 + i] + c(1) * w_uk[4 + h * 2 + i]);
      }
      keys.push_back(c(2));
      for (std::size_t j = 0; j < 3; ++j) {
        values.push_back(c(0) * w_uv[h * 3 + j] + c(1) * w_uv[6 + h * 3 + j]);
      }
    }
  }
  a.kv.key = p.pool.values(DType::kF32, {1, 5, 2, 3}, keys);
  a.kv.value = p.pool.values(DType::kF32, {1, 5, 2, 3}, values);
  expect_same_bytes(ExactAnswer{p.op}, ExactAnswer{a}, kStates);
}

TEST(ExactMla, ExpandedSumsMagnitudesOfProducts) {
  LatentProblem p;
  p.op.form = MlaForm::kExpanded;
  p.op.qk_nope_head_dim = 2;
  p.op.query_start_loc = p.pool.values(DType::kI32, {2}, {0, 1});
  p.op.seq_lens = p.pool.values(DType::kI32, {1}, {1});
  p.op.kv_cache = p.pool.values(DType::kF32, {1, 1, 3}, {2, -3, 5});
  p.op.block_table = p.pool.values(DType::kI32, {1, 1}, {0});
  p.op.w_uk = p.pool.values(DType::kF32, {2, 2, 2}, {1, 2, 0, 0, 1, 1, 0, 0});
  p.op.w_uv = p.pool.values(DType::kF32, {2, 2, 1}, {4, 0, 1, 0});
  p.op.scale = 1.0;
  // Head 0, q = 1, 2, 3: k = (2 - 3, 4 - 3, 5), |k| = (5, 7, 5); v = 8 - 3, |v| = 11.
  const ExactAnswer answer{p.op};
  EXPECT_EQ(answer.values("out").at(0), 5.0);
  EXPECT_EQ(answer.values("cond_pv").at(0), 11.0);
  EXPECT_EQ(answer.values("lse").at(0), 16.0);  // -1 + 2 + 15
  EXPECT_EQ(answer.row(0, 0, kRowAMax), 34.0);  // 5 + 14 + 15
  EXPECT_EQ(answer.row(0, 0, kRowKeyL1), 17.0);
  EXPECT_EQ(answer.row(0, 0, kRowKeyMax), 7.0);
  EXPECT_EQ(answer.row(0, 0, kRowQueryL1), 6.0);
  EXPECT_EQ(answer.row(0, 0, kRowValueMax), 11.0);
}

TEST(ExactMlaSparse, CountsDuplicatesAndReadsOnlyWhatIsListed) {
  LatentProblem p;
  MlaSparseOp sparse;
  sparse.mla = p.op;
  sparse.topk_indices = p.pool.values(DType::kI32, {2, 4}, {2, -1, 0, 2, 1, 3, 4, 4});
  sparse.topk_lens = p.pool.values(DType::kI32, {2}, {4, 2});
  sparse.sinks = p.pool.values(DType::kF32, {2}, {0.5, -1});
  AttentionOp a = p.as_attention();  // tokens 2, 0, 2 and 1, 3 as two requests
  a.query_start_loc = p.pool.values(DType::kI32, {3}, {0, 1, 2});
  a.seq_lens = p.pool.values(DType::kI32, {2}, {3, 2});
  a.mask.causal = false;
  a.sinks = sparse.sinks;
  a.kv.layout = KvLayout::kVarlen;
  a.kv.block_table = TensorView{};
  a.kv.kv_start_loc = p.pool.values(DType::kI32, {3}, {0, 3, 5});
  std::vector<double> keys, values;
  for (const auto& [block, slot] : {std::pair{0, 0}, {1, 0}, {0, 0}, {1, 1}, {0, 1}}) {
    for (int d = 0; d < 3; ++d) keys.push_back(value_at(p.op.kv_cache, block, slot, d));
    for (int d = 0; d < 2; ++d) values.push_back(value_at(p.op.kv_cache, block, slot, d));
  }
  a.kv.key = p.pool.values(DType::kF32, {5, 1, 3}, keys);
  a.kv.value = p.pool.values(DType::kF32, {5, 1, 2}, values);
  const ExactAnswer answer{sparse};
  const ExactAnswer expected{a};
  expect_same_bytes(answer, expected, {"out", "lse", "cond_pv", "cond_pav", "cond_puv", "cond_v"});
  EXPECT_EQ(answer.row(0, 0, kRowVisible), 3.0);
  EXPECT_EQ(answer.row(0, 0, kRowSpan), 4.0);  // places 0 to 3 of the list
  // The same slots by number: token t lies in slot 2, 3, 0, 1.
  sparse.index_space = TopkIndexSpace::kSlot;
  sparse.topk_indices = p.pool.values(DType::kI32, {2, 4}, {0, -1, 2, 0, 3, 1, 4, 4});
  expect_same_bytes(ExactAnswer{sparse}, answer, kStates);
}

TEST(ExactMla, DecodesDsMlaRows) {
  TensorPool pool;
  MlaOp op;
  op.encoding = KvEncoding::kFp8DsMla;
  op.kv_lora_rank = 512;
  op.qk_rope_head_dim = 64;
  op.query_start_loc = pool.values(DType::kI32, {2}, {0, 1});
  op.seq_lens = pool.values(DType::kI32, {1}, {1});
  op.block_table = pool.values(DType::kI32, {1, 1}, {0});
  std::vector<double> query(576, 0.0);
  query[130] = query[575] = 1.0;
  op.query = pool.values(DType::kF32, {1, 1, 576}, query);
  const MutableTensorView cache = pool.zeros(DType::kU8, {1, 1, 656});
  store_code(DType::kU8, encode(DType::kF8E4M3FN, 1.5, Overflow::kInfinity), cache.at(0, 0, 130));
  store_code(DType::kF32, encode(DType::kF32, 0.25, Overflow::kInfinity), cache.at(0, 0, 516));
  store_code(DType::kBF16, encode(DType::kBF16, -2, Overflow::kInfinity), cache.at(0, 0, 654));
  op.kv_cache = cache;
  const ExactAnswer answer{op};
  EXPECT_EQ(answer.values("lse").at(0), 0.375 - 2.0);
  EXPECT_EQ(answer.values("out").at(130), 0.375);
}

// Two pairs of query heads over one pair of KV heads, 3 keys; head size 1, values of one element.
struct PairProblem {
  PairProblem() {
    AttentionOp& a = op.attention;
    a.query = pool.values(DType::kF64, {1, 4, 1}, {1, 2, -1, 0.5});
    a.query_start_loc = pool.values(DType::kI32, {2}, {0, 1});
    a.seq_lens = pool.values(DType::kI32, {1}, {3});
    a.kv.kv_start_loc = pool.values(DType::kI32, {2}, {0, 3});
    a.kv.key = pool.values(DType::kF64, {3, 2, 1}, {0, 1, 0.5, -1, -1.25, 2});
    a.kv.value = pool.values(DType::kF64, {3, 2, 1}, {1, 10, -2, 20, 3, -30});
    op.lambda = 0.25;
    op.lambda_init = 0.5;
  }

  // Softmax of query head `head` over keys of KV head `kv_head`, values of KV head `of`.
  ExactAnswer attention(std::int64_t head, std::int64_t kv_head, std::int64_t of) {
    AttentionOp a = op.attention;
    a.query = slice(a.query, 1, head, 1);
    a.kv.key = slice(a.kv.key, 1, kv_head, 1);
    a.kv.value = slice(a.kv.value, 1, of, 1);
    return ExactAnswer{a};
  }

  TensorPool pool;
  DifferentialOp op;
};

TEST(ExactDifferential, PairsNeighbouringHeads) {
  PairProblem p;
  const ExactAnswer answer{p.op};
  for (std::int64_t which = 0; which < 2; ++which) {
    for (std::int64_t pair = 0; pair < 2; ++pair) {
      for (std::int64_t side = 0; side < 2; ++side) {
        const ExactAnswer part = p.attention(2 * pair + which, which, side);
        const auto at = [&](const char* name) {
          return value_at(answer.view(name), which, 0, pair, side);
        };
        EXPECT_EQ(at("cond_o"), part.values("out").at(0));
        EXPECT_EQ(at("cond_pv"), part.values("cond_pv").at(0));
        EXPECT_EQ(at("cond_puv"), part.values("cond_puv").at(0));
        for (const RowField f : {kRowMax, kRowLse, kRowPa, kRowMass}) {
          EXPECT_EQ(value_at(answer.view("cond_row"), which, 0, pair, f), part.row(0, 0, f));
        }
      }
    }
  }
  for (std::int64_t pair = 0; pair < 2; ++pair) {
    for (std::int64_t side = 0; side < 2; ++side) {
      const auto y = [&](int which) {
        return value_at(answer.view("cond_o"), which, 0, pair, side);
      };
      EXPECT_NEAR(value_at(answer.view("out"), 0, pair, side), 0.5 * (y(0) - 0.25 * y(1)), 1e-14);
    }
  }
}

TEST(ExactDifferential, NormalisesByTheRootMeanSquare) {
  PairProblem p;  // one key: y = (1 - 1/4) * v = (3/4, 15/2)
  p.op.attention.seq_lens = p.pool.values(DType::kI32, {1}, {1});
  p.op.attention.kv.kv_start_loc = p.pool.values(DType::kI32, {2}, {0, 1});
  p.op.attention.kv.key = slice(p.op.attention.kv.key, 0, 0, 1);
  p.op.attention.kv.value = p.pool.values(DType::kF64, {1, 2, 1}, {4, 28});  // y = (3, 21)
  p.op.norm_weight = p.pool.values(DType::kF32, {2}, {2, -1});
  p.op.eps = 1.0;  // mean square 225, and 1: root sqrt(226)
  const std::vector<double> out = ExactAnswer{p.op}.values("out");
  EXPECT_NEAR(out.at(0), 0.5 * 2 * 3 / std::sqrt(226.0), 1e-16);
  EXPECT_NEAR(out.at(1), -0.5 * 21 / std::sqrt(226.0), 1e-15);
  p.op.eps = 0.0;
  EXPECT_EQ(ExactAnswer{p.op}.values("out").at(1), -0.7);  // -21 / 30
  p.op.lambda = 1.0;                                       // y = 0: 0 / 0
  EXPECT_TRUE(std::isnan(ExactAnswer{p.op}.values("out").at(0)));
  p.op.eps = 1.0;
  EXPECT_EQ(ExactAnswer{p.op}.values("out").at(0), 0.0);
}

TEST(ExactIndexer, SumsWeightedPositiveScores) {
  TensorPool pool;
  IndexerOp op;
  op.query = pool.values(DType::kF32, {2, 2, 2}, {1, 2, -1, 3, 1, 2, -1, 3});
  op.key = pool.values(DType::kF32, {3, 2}, {1, 1, 2, -1, kNaN, 0});
  op.k_scale = pool.values(DType::kF32, {3, 1}, {1, 2, 1});
  op.weights = pool.values(DType::kF32, {2, 2}, {1.5, -2, 0.5, 1});
  op.k_start = pool.values(DType::kI32, {2}, {0, 1});
  op.k_end = pool.values(DType::kI32, {2}, {2, 3});
  const ExactAnswer answer{op};
  // Key 0: scores 3, 2; magnitudes 3, 4. Key 1, twice (2, -1): scores 0, -10; magnitudes 8, 10.
  const std::vector<double> logits = answer.values("logits");
  EXPECT_EQ(logits.at(0), 1.5 * 3 - 2 * 2);
  EXPECT_EQ(logits.at(1), 0.0);
  EXPECT_FALSE(std::signbit(logits.at(1)));
  EXPECT_EQ(logits.at(2), -kInf);
  EXPECT_EQ(logits.at(3), -kInf);
  EXPECT_EQ(logits.at(4), 0.0);
  EXPECT_TRUE(std::isnan(logits.at(5)));
  EXPECT_EQ(answer.values("cond_ix"),
            (std::vector<double>{1.5 * 3 + 2 * 4, 1.5 * 8 + 2 * 10, 0, 0, 0.5 * 8 + 10, kInf}));
  EXPECT_EQ(answer.bits, 400);  // a sum of nothing positive is no cancellation
}

MergeStatesOp merge_of(TensorPool& pool, const std::vector<double>& lse,
                       const std::vector<double>& out, bool base_2 = false) {
  const auto n = static_cast<std::int64_t>(lse.size());
  MergeStatesOp op;
  op.lse_parts = pool.values(DType::kF64, {n, 1, 1}, lse);
  op.out_parts = pool.values(DType::kF64, {n, 1, 1, 1}, out);
  op.lse_base_2 = base_2;
  return op;
}

TEST(ExactMergeStates, WeighsPartsInEitherBase) {
  TensorPool pool;
  const ExactAnswer equal{merge_of(pool, {0.3, 0.3, 0.3}, {1, 2, 4})};
  EXPECT_EQ(equal.values("out").at(0), 7.0 / 3.0);
  const ExactAnswer base_2{merge_of(pool, {0, 1}, {1, 3}, true)};
  EXPECT_EQ(base_2.values("out").at(0), 7.0 / 3.0);
  EXPECT_EQ(base_2.values("lse").at(0), 0x1.193ea7aad030bp+0);  // ln 3, see exact_answer_test.cc
  // (2 * 3/2 + 3 * 2^-53) / 3 is half way to the next double; weights of 2/3 and 1/3 are computed.
  EXPECT_EQ(ExactAnswer{merge_of(pool, {1, 0}, {1.5, 3 * 0x1p-53}, true)}.values("out").at(0), 1.0);
  EXPECT_EQ(ExactAnswer{merge_of(pool, {-1, -1}, {1, 1}, true)}.codes("lse").at(0), 0U);
}

TEST(ExactMergeStates, TakesEmptyPartsForNothing) {
  TensorPool pool;
  for (const double empty : {-kInf, kInf}) {
    const ExactAnswer one{merge_of(pool, {empty, 0.5}, {kNaN, 0.1})};
    EXPECT_EQ(one.values("out").at(0), 0.1);
    EXPECT_EQ(one.values("lse").at(0), 0.5);
    const ExactAnswer none{merge_of(pool, {empty, -kInf}, {kNaN, kNaN})};
    EXPECT_EQ(none.codes("out").at(0), 0U);
    EXPECT_EQ(none.values("lse").at(0), -kInf);
    EXPECT_EQ(none.row(0, 0, kRowVisible), 0.0);
  }
  const ExactAnswer nan{merge_of(pool, {kNaN, 0.5}, {1, 0.1})};
  EXPECT_TRUE(std::isnan(nan.values("out").at(0)) && std::isnan(nan.values("lse").at(0)));
}

TEST(ExactMergeStates, CountsLivePartsInItsSums) {
  TensorPool pool;
  const ExactAnswer answer{merge_of(pool, {1, kInf, 0}, {1, kNaN, -3}, true)};
  EXPECT_EQ(answer.row(0, 0, kRowVisible), 2.0);
  EXPECT_EQ(answer.row(0, 0, kRowSpan), 2.0);
  EXPECT_EQ(answer.values("cond_pv").at(0), static_cast<double>(std::nextafterf(5.0F / 3, 2)));
  EXPECT_EQ(answer.values("cond_v").at(0), 4.0);
  EXPECT_EQ(answer.row(0, 0, kRowAMax), 0.0);
  EXPECT_EQ(answer.row(0, 0, kRowDMax), 0x1.62e42fefa39f0p-1);  // ln 2 upward
}

}  // namespace
}  // namespace attn
