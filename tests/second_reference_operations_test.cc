// What third parties' cases do not show of the second reference: inline scales, expanded latents,
// writes of latent rows, and the backend itself. Values are worked out from the definitions.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attn/error.h"
#include "attn/second_reference.h"
#include "tests/operation_answer.h"

namespace attn {
namespace {

const Backend& second_reference() {
  static const std::unique_ptr<Backend> kBackend = make_second_reference_backend();
  return *kBackend;
}

// One request of `rows` rows and `keys` keys in blocks of 2, block ids counted down.
MlaOp latent_operation(TensorPool& pool, std::int64_t rows, std::int64_t keys) {
  MlaOp op;
  op.query_start_loc = pool.values(DType::kI32, {2}, {0.0, static_cast<double>(rows)});
  op.seq_lens = pool.values(DType::kI32, {1}, {static_cast<double>(keys)});
  const std::int64_t blocks = (keys + 1) / 2;
  std::vector<double> table;
  for (std::int64_t b = blocks; b > 0; --b) table.push_back(static_cast<double>(b - 1));
  op.block_table = pool.values(DType::kI32, {1, blocks}, table);
  return op;
}

// Latent of size 2, no scores (query 0): every visible key weighs the same. Positions 0, 1, 2 lie
// in slots 2, 3 and 0; slot 1 is NaN.
MlaOp uniform_operation(TensorPool& pool) {
  MlaOp op = latent_operation(pool, 2, 3);
  op.kv_lora_rank = 2;
  op.qk_rope_head_dim = 1;
  op.query = pool.zeros(DType::kF32, {2, 1, 3});
  op.kv_cache = pool.values(DType::kF32, {2, 2, 3}, {8, -2, 5, NAN, NAN, NAN, 1, 10, 5, 3, 20, 5});
  return op;
}

TEST(SecondReferenceMla, RowsSeeKeysUpToTheirPosition) {
  TensorPool pool;
  MlaOp op = uniform_operation(pool);
  const OperationAnswer causal(op, second_reference());
  // Row 0 stands at position 1: means of 1, 3 and of 10, 20. Row 1 sees 8 and -2 too.
  EXPECT_EQ(causal.values("out"), (std::vector<double>{2, 15, 4, 28.0 / 3}));
  EXPECT_EQ(causal.values("lse"), (std::vector<double>{std::log(2.0), std::log(3.0)}));
  op.causal = false;
  EXPECT_EQ(OperationAnswer(op, second_reference()).values("out"),
            (std::vector<double>{4, 28.0 / 3, 4, 28.0 / 3}));
}

TEST(SecondReferenceMla, ExpandedKeysAndValuesAreProducts) {
  TensorPool pool;
  MlaOp op = latent_operation(pool, 1, 1);
  op.form = MlaForm::kExpanded;
  op.kv_lora_rank = 2;
  op.qk_nope_head_dim = 1;
  op.qk_rope_head_dim = 1;
  op.scale = 0.5;
  op.kv_cache = pool.values(DType::kF32, {1, 2, 3}, {2, 3, 7, NAN, NAN, NAN});
  op.k_scale = pool.values(DType::kF32, {1}, {2});                // latent 4, 6; rope 14
  op.w_uk = pool.values(DType::kF32, {2, 2, 1}, {1, 10, 5, 20});  // [latent, head, 1]
  op.w_uv = pool.values(DType::kF32, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  op.query = pool.values(DType::kF32, {1, 2, 2}, {1, 2, 3, -1});  // nope, rope of both heads
  const OperationAnswer answer(op, second_reference());
  // Keys of nope: 4 * 1 + 6 * 5 = 34 and 4 * 10 + 6 * 20 = 160.
  EXPECT_EQ(answer.values("lse"), (std::vector<double>{0.5 * (34 + 2 * 14), 0.5 * (3 * 160 - 14)}));
  EXPECT_EQ(answer.values("out"), (std::vector<double>{4 * 1 + 6 * 5, 4 * 2 + 6 * 6,  //
                                                       4 * 3 + 6 * 7, 4 * 4 + 6 * 8}));
}

TEST(SecondReferenceMlaSparse, CountsDuplicatesAndKeepsAPrefix) {
  TensorPool pool;
  MlaSparseOp op;
  op.mla = uniform_operation(pool);
  op.topk_indices = pool.values(DType::kI32, {2, 4}, {1, -1, 1, 0, 2, 0, 0, 0});
  op.topk_lens = pool.values(DType::kI32, {2}, {4, 1});
  const OperationAnswer positions(op, second_reference());
  EXPECT_EQ(positions.values("out"), (std::vector<double>{7.0 / 3, 50.0 / 3, 8, -2}));
  EXPECT_EQ(positions.values("lse"), (std::vector<double>{std::log(3.0), 0.0}));

  op.index_space = TopkIndexSpace::kSlot;
  op.topk_indices = pool.values(DType::kI32, {2, 4}, {3, -1, 3, 2, 0, 1, 1, 1});
  op.sinks = pool.values(DType::kF32, {1}, {0});
  op.lse_includes_sink = false;
  const OperationAnswer slots(op, second_reference());
  EXPECT_EQ(slots.values("out"), (std::vector<double>{7.0 / 4, 50.0 / 4, 4, -1}));
  EXPECT_EQ(slots.values("lse"), (std::vector<double>{std::log(3.0), 0.0}));
}

// Bytes of an fp8_ds_mla row whose latents are 1.5 times the scales 1, 2, 4 and -8 of their groups
// and whose rope counts from 0.
std::vector<double> ds_mla_row() {
  std::vector<double> bytes(656, 0.0);
  for (std::size_t l = 0; l < 512; ++l) bytes[l] = 0x3C;  // e4m3 1.5
  const double scale_tops[4][2] = {{0x3F, 0x80}, {0x40, 0x00}, {0x40, 0x80}, {0xC1, 0x00}};
  for (std::size_t g = 0; g < 4; ++g) {
    bytes[512 + 4 * g + 3] = scale_tops[g][0];
    bytes[512 + 4 * g + 2] = scale_tops[g][1];
  }
  for (std::size_t d = 0; d < 64; ++d) {
    const std::uint64_t code = encode(DType::kBF16, static_cast<double>(d), Overflow::kInfinity);
    bytes[528 + 2 * d] = static_cast<double>(code & 0xFF);
    bytes[528 + 2 * d + 1] = static_cast<double>(code >> 8);
  }
  return bytes;
}

TEST(SecondReferenceMla, ReadsRowsWithInlineScales) {
  TensorPool pool;
  MlaOp op = latent_operation(pool, 1, 1);
  op.encoding = KvEncoding::kFp8DsMla;
  op.kv_lora_rank = 512;
  op.qk_rope_head_dim = 64;
  op.kv_cache = pool.values(DType::kU8, {1, 1, 656}, ds_mla_row());
  op.block_table = pool.values(DType::kI32, {1, 1}, {0});
  std::vector<double> query(576, 0.0);
  query[127] = 1.0;       // 1.5
  query[128] = 10.0;      // 3
  query[511] = 1.0;       // -12
  query[512 + 63] = 2.0;  // 63
  op.query = pool.values(DType::kF32, {1, 1, 576}, query);
  const OperationAnswer answer(op, second_reference());
  EXPECT_EQ(answer.values("lse"), (std::vector<double>{1.5 + 30 - 12 + 126}));
  const std::vector<double> out = answer.values("out");
  for (std::size_t l = 0; l < 512; ++l) {
    const double expected[] = {1.5, 3, 6, -12};
    EXPECT_EQ(out[l], expected[l / 128]) << l;
  }
}

TEST(SecondReferenceMlaCacheWrite, WritesRowsWithInlineScales) {
  TensorPool pool;
  std::vector<double> latent(512, 0.0);
  latent[0] = 896.0;     // group 0: scale 2
  latent[1] = 3.0;       // 1.5: code 0x3C
  latent[511] = -448.0;  // group 3: scale 1
  std::vector<double> rope(64, 0.0);
  rope[63] = 1.5;  // bf16 0x3FC0
  MlaCacheWriteOp op;
  op.encoding = KvEncoding::kFp8DsMla;
  op.kv_c = pool.values(DType::kBF16, {1, 512}, latent);
  op.k_pe = pool.values(DType::kBF16, {1, 64}, rope);
  op.slot_mapping = pool.values(DType::kI64, {1}, {1});
  op.kv_cache = pool.values(DType::kU8, {1, 2, 656}, std::vector<double>(2 * 656, 9.0));
  const std::vector<double> bytes =
      OperationAnswer(op, second_reference()).values("kv_cache_after");
  std::vector<double> expected(2 * 656, 0.0);
  for (std::size_t i = 0; i < 656; ++i) expected[i] = 9.0;
  double* row = expected.data() + 656;
  row[0] = 0x7E;
  row[1] = 0x3C;
  row[511] = 0xFE;
  row[515] = 0x40;                   // 2
  row[518] = row[522] = 0x80;        // 2^-126 of the groups of zeros
  row[526] = 0x80, row[527] = 0x3F;  // 1
  row[654] = 0xC0, row[655] = 0x3F;
  EXPECT_EQ(bytes, expected);
}

TEST(SecondReferenceMlaCacheWrite, CopiesOrDividesByOneScale) {
  TensorPool pool;
  MlaCacheWriteOp op;
  op.kv_c = pool.values(DType::kBF16, {2, 2}, {1, 2, 3, -1000});
  op.k_pe = pool.values(DType::kBF16, {2, 1}, {7, 8});
  op.slot_mapping = pool.values(DType::kI64, {2}, {-1, 0});
  op.kv_cache = pool.zeros(DType::kBF16, {1, 2, 3});
  EXPECT_EQ(OperationAnswer(op, second_reference()).values("kv_cache_after"),
            (std::vector<double>{3, -1000, 8, 0, 0, 0}));
  op.kv_cache = pool.zeros(DType::kF8E4M3FN, {1, 2, 3});
  op.k_scale = pool.values(DType::kF32, {1}, {2});
  EXPECT_EQ(OperationAnswer(op, second_reference()).values("kv_cache_after"),
            (std::vector<double>{1.5, -448, 4, 0, 0, 0}));
}

CacheWriteOp write_operation(TensorPool& pool, DType cache) {
  CacheWriteOp op;
  op.key = pool.values(DType::kF32, {3, 1, 2}, {254, -5, NAN, 1, 1000, 0x1.01p0});
  op.value = op.key;
  op.slot_mapping = pool.values(DType::kI64, {3}, {3, -1, 0});
  op.cache.layout = KvLayout::kPaged;
  op.cache.key = pool.zeros(cache, {2, 2, 1, 2});
  op.cache.value = op.cache.key;
  return op;
}

TEST(SecondReferenceCacheWrite, RoundsDividesAndSaturates) {
  TensorPool pool;
  CacheWriteOp op = write_operation(pool, DType::kBF16);
  EXPECT_EQ(OperationAnswer(op, second_reference()).values("value_cache_after"),
            (std::vector<double>{1000, 1, 0, 0, 0, 0, 254, -5}));  // 1 + 2^-8 to even
  op = write_operation(pool, DType::kF8E4M3FN);
  op.cache.v_scale = pool.values(DType::kF32, {1}, {0.5});
  const OperationAnswer answer(op, second_reference());
  EXPECT_EQ(answer.values("key_cache_after"), (std::vector<double>{448, 1, 0, 0, 0, 0, 256, -5}));
  EXPECT_EQ(answer.values("value_cache_after"),
            (std::vector<double>{448, 2, 0, 0, 0, 0, 448, -10}));
}

TEST(SecondReferenceCacheWrite, ComputesAScalePerTokenAndHead) {
  TensorPool pool;
  CacheWriteOp op = write_operation(pool, DType::kI8);
  op.cache.encoding = KvEncoding::kPerTokenHead;
  op.cache.k_scale_cache = pool.zeros(DType::kF32, {2, 2, 1});
  op.cache.v_scale_cache = op.cache.k_scale_cache;
  const OperationAnswer answer(op, second_reference());
  // 254 / 2 and -5 / 2, half away from zero; 1000 / 127 in float32.
  EXPECT_EQ(answer.values("key_cache_after"), (std::vector<double>{127, 0, 0, 0, 0, 0, 127, -3}));
  EXPECT_EQ(answer.values("v_scale_cache_after"), (std::vector<double>{1000.0F / 127.0F, 0, 0, 2}));
}

TEST(SecondReferenceIndexer, RectifiesScaledProductsInsideTheRange) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  TensorPool pool;
  IndexerOp op;
  op.query = pool.values(DType::kF32, {2, 2, 2}, {1, 2, -1, 0, 1, 1, 1, NAN});
  op.key = pool.values(DType::kF32, {3, 2}, {3, 1, 2, 2, 4, 0});
  op.k_scale = pool.values(DType::kF32, {3, 1}, {1, -1, 0.5});
  op.weights = pool.values(DType::kF32, {2, 2}, {10, 100, 1, 1});
  op.k_start = pool.values(DType::kI32, {2}, {0, 2});
  op.k_end = pool.values(DType::kI32, {2}, {2, 3});
  const std::vector<double> logits = OperationAnswer(op, second_reference()).values("logits");
  EXPECT_EQ(logits[0], 10 * 5);   // -3 of head 1 is rectified
  EXPECT_EQ(logits[1], 100 * 2);  // key (-2, -2)
  EXPECT_EQ(std::vector<double>(logits.begin() + 2, logits.begin() + 5),
            (std::vector<double>{kNone, kNone, kNone}));
  EXPECT_TRUE(std::isnan(logits[5]));
}

TEST(SecondReference, HonoursNoExecAndNoOtherFormOfLse) {
  TensorPool pool;
  MlaOp op = uniform_operation(pool);
  op.exec.num_splits = 2;
  const AttentionProblem problem(op);
  Outputs outputs;
  outputs.lse = pool.zeros(DType::kF64, {1, 2});
  EXPECT_EQ(second_reference().name(), "SECOND_REFERENCE");
  EXPECT_EQ(run_once(second_reference(), problem, outputs), ExecSpec{});
  EXPECT_EQ(value_at(outputs.lse, 0, 1), std::log(3.0));
  outputs.lse_form.base = LseBase::k2;
  EXPECT_THROW(run_once(second_reference(), problem, outputs), Error);
}

TEST(SecondReference, AnswersNoConditioningSums) {
  TensorPool pool;
  const AttentionProblem problem(uniform_operation(pool));
  Outputs outputs;
  outputs.cond_pv = pool.zeros(DType::kF32, {2, 1, 2});
  EXPECT_FALSE(second_reference().capabilities().conditioning);
  EXPECT_THROW(run_once(second_reference(), problem, outputs), Error);
}

}  // namespace
}  // namespace attn
