#include "attn/conditioning.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "attn/backend.h"
#include "attn/error.h"
#include "attn/reference.h"
#include "core/special_values.h"
#include "tests/tensor_pool.h"

namespace attn {
namespace {

// REFERENCE's conditioning sums of an operation.
class Sums {
 public:
  explicit Sums(const Operation& operation) {
    const AttentionProblem problem(operation);
    Outputs outputs;
    for (const OutputSpec& spec : conditioning_specs(problem)) {
      outputs.*spec.view = pool_.zeros(spec.dtype, spec.shape);
      views_[std::string(spec.name)] = outputs.*spec.view;
    }
    run_once(*make_reference_backend(), problem, outputs);
  }

  bool has(const std::string& name) const { return views_.contains(name); }
  template <class... Index>
  double at(const std::string& name, Index... index) const {
    return value_at(views_.at(name), index...);
  }

 private:
  TensorPool pool_;
  std::map<std::string, TensorView> views_;
};

// One row with query (2, 1) and keys (1, 0), (0, -4), (-1, 3) in turn, values 1, -2, 4; scale 1/2.
// Scores 1, -2, 1/2; a = 1, 2, 5/2.
struct ThreeKeys {
  ThreeKeys() {
    op.query = pool.values(DType::kF32, {1, 1, 2}, {2, 1});
    op.query_start_loc = pool.values(DType::kI32, {2}, {0, 1});
    op.seq_lens = pool.values(DType::kI32, {1}, {3});
    op.kv.kv_start_loc = pool.values(DType::kI32, {2}, {0, 3});
    op.kv.key = pool.values(DType::kF32, {3, 1, 2}, {1, 0, 0, -4, -1, 3});
    op.kv.value = pool.values(DType::kF32, {3, 1, 1}, {1, -2, 4});
    op.scale = 0.5;
  }

  TensorPool pool;
  AttentionOp op;
};

// Not below, and by less than 2^-18 above.
void expect_just_above(double actual, double exact) {
  EXPECT_GE(actual, exact);
  EXPECT_LE(actual, exact * (1 + 0x1p-18));
}

TEST(Conditioning, SumsOfARowFollowTheirFormulas) {
  ThreeKeys p;
  const Sums sums(p.op);
  const double u[] = {1.0, -2.0, 0.5}, a[] = {1.0, 2.0, 2.5}, v[] = {1.0, 2.0, 4.0};
  const double l = 1.0 + std::exp(-3.0) + std::exp(-0.5);
  double pv = 0, pav = 0, puv = 0, pa = 0, pd = 0;
  for (int k = 0; k < 3; ++k) {
    const double weight = std::exp(u[k] - 1.0) / l;
    pv += weight * v[k];
    pav += weight * a[k] * v[k];
    puv += weight * (1.0 - u[k]) * v[k];
    pa += weight * a[k];
    pd += weight * (1.0 - u[k]);
  }
  expect_just_above(sums.at("cond_pv", 0, 0, 0), pv);
  expect_just_above(sums.at("cond_pav", 0, 0, 0), pav);
  expect_just_above(sums.at("cond_puv", 0, 0, 0), puv);
  expect_just_above(sums.at("cond_v", 0, 0, 0), 7.0);
  const auto field = [&](int f) { return sums.at("cond_row", 0, 0, f); };
  EXPECT_EQ(field(kRowMax), 1.0);
  EXPECT_DOUBLE_EQ(field(kRowLse), 1.0 + std::log(l));
  EXPECT_EQ(field(kRowVisible), 3.0);
  EXPECT_EQ(field(kRowSpan), 3.0);
  EXPECT_LE(field(kRowMass), 1.0);
  EXPECT_GE(field(kRowMass), 1.0 - 0x1p-18);
  expect_just_above(field(kRowPa), pa);
  expect_just_above(field(kRowPd), pd);
  EXPECT_EQ(field(kRowSinkDistance), 0.0);
  expect_just_above(field(kRowAMax), 2.5);
  expect_just_above(field(kRowDMax), 3.0);
  EXPECT_EQ(field(kRowBiasMax), 0.0);
  expect_just_above(field(kRowQueryL1), 1.5);
  expect_just_above(field(kRowKeyL1), 2.0);
  expect_just_above(field(kRowQueryMax), 2.0);
  expect_just_above(field(kRowKeyMax), 4.0);
  expect_just_above(field(kRowValueMax), 4.0);
  EXPECT_EQ(field(kRowKeysMax), 1.0);
}

TEST(Conditioning, SinkJoinsTheMaximumAndHasADistance) {
  ThreeKeys p;
  p.op.sinks = p.pool.values(DType::kF32, {1}, {3});
  p.op.lse_includes_sink = false;  // L counts it all the same
  const Sums sums(p.op);
  const double l = 1.0 + std::exp(-2.0) + std::exp(-5.0) + std::exp(-2.5);
  EXPECT_EQ(sums.at("cond_row", 0, 0, int{kRowMax}), 3.0);
  EXPECT_EQ(sums.at("cond_row", 0, 0, int{kRowKeysMax}), 1.0);
  EXPECT_DOUBLE_EQ(sums.at("cond_row", 0, 0, int{kRowLse}), 3.0 + std::log(l));
  expect_just_above(sums.at("cond_row", 0, 0, int{kRowSinkDistance}), 2.0 / l);
  EXPECT_NEAR(sums.at("cond_row", 0, 0, int{kRowMass}), 1.0 - 1.0 / l, 0x1p-18);
  expect_just_above(sums.at("cond_row", 0, 0, int{kRowDMax}), 5.0);
}

TEST(Conditioning, BiasesAndHiddenKeys) {
  ThreeKeys p;
  p.op.bias.attn_bias = p.pool.values(DType::kF32, {1, 1, 1, 3}, {-0.5, -kInf, 0.25});
  p.op.bias.alibi_form = AlibiForm::kRow;  // slope 1: -2, -1, 0
  p.op.bias.alibi_slopes = p.pool.values(DType::kF32, {1}, {1});
  const Sums sums(p.op);
  EXPECT_EQ(sums.at("cond_row", 0, 0, int{kRowVisible}), 2.0);
  EXPECT_EQ(sums.at("cond_row", 0, 0, int{kRowSpan}), 3.0);
  expect_just_above(sums.at("cond_row", 0, 0, int{kRowBiasMax}), 2.5);
  expect_just_above(sums.at("cond_v", 0, 0, 0), 5.0);
}

TEST(Conditioning, RowWithoutKeysIsExact) {
  ThreeKeys p;
  p.op.mask.attn_mask = p.pool.values(DType::kBool, {1, 1, 1, 1}, {0});
  p.op.mask.attn_mask.shape[3] = 3;
  p.op.mask.attn_mask.stride_bytes[3] = 0;
  p.op.sinks = p.pool.values(DType::kF32, {1}, {2});
  const Sums sums(p.op);
  for (int f = 0; f < kNumRowFields; ++f) {
    const double expected = f == kRowMax || f == kRowLse ? 2.0 : f == kRowKeysMax ? -kInf : 0.0;
    EXPECT_EQ(sums.at("cond_row", 0, 0, f), expected) << f;
  }
  EXPECT_EQ(sums.at("cond_v", 0, 0, 0), 0.0);
}

TEST(Conditioning, NoBoundWhereTheAnswerIsNaN) {
  for (const bool sink : {false, true}) {
    ThreeKeys p;
    if (sink) {
      p.op.sinks = p.pool.values(DType::kF32, {1}, {kInf});
    } else {
      p.op.kv.value = p.pool.values(DType::kF32, {3, 1, 1}, {1, kNaN, 4});
    }
    const Sums sums(p.op);
    EXPECT_EQ(sums.at("cond_pv", 0, 0, 0), kInf);
    EXPECT_EQ(sums.at("cond_row", 0, 0, int{kRowMax}), kInf);
    EXPECT_EQ(sums.at("cond_row", 0, 0, int{kRowVisible}), 3.0);
    EXPECT_EQ(sums.at("cond_row", 0, 0, int{kRowSpan}), 3.0);
  }
}

TEST(Conditioning, TinyWeightsAreNotLost) {
  ThreeKeys p;
  p.op.scale = 0x1p10;  // the weight of the second key is e^-6144
  p.op.kv.value = p.pool.values(DType::kF32, {3, 1, 1}, {0, -2, 0});
  const Sums sums(p.op);
  EXPECT_GT(sums.at("cond_pv", 0, 0, 0), 0.0);
  EXPECT_GT(sums.at("cond_puv", 0, 0, 0), 0.0);
}

// Half of five least numbers is no number: rounded to two, both keys' shares would be four.
TEST(Conditioning, HalvesOfTheLeastNumbersAreNotLost) {
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  ThreeKeys p;
  p.op.query = p.pool.values(DType::kF64, {1, 1, 1}, {1});
  p.op.seq_lens = p.pool.values(DType::kI32, {1}, {2});
  p.op.kv.kv_start_loc = p.pool.values(DType::kI32, {2}, {0, 2});
  p.op.kv.key = p.pool.values(DType::kF64, {2, 1, 1}, {5 * kLeast, 5 * kLeast});
  p.op.kv.value = p.pool.values(DType::kF64, {2, 1, 1}, {1, 1});
  p.op.scale = 1.0;
  EXPECT_GE(Sums(p.op).at("cond_row", 0, 0, kRowPa), 5 * kLeast);
}

TEST(Conditioning, PartsHaveNoScores) {
  TensorPool pool;
  MergeStatesOp op;
  op.out_parts = pool.values(DType::kF32, {3, 1, 1, 1}, {1, 100, -3});
  op.lse_parts = pool.values(DType::kF32, {3, 1, 1}, {0, -kInf, 0});
  const Sums sums(op);
  EXPECT_FALSE(sums.has("cond_pav"));
  expect_just_above(sums.at("cond_pv", 0, 0, 0), 2.0);
  expect_just_above(sums.at("cond_v", 0, 0, 0), 4.0);
  EXPECT_EQ(sums.at("cond_row", 0, 0, int{kRowVisible}), 2.0);
  EXPECT_EQ(sums.at("cond_row", 0, 0, int{kRowSpan}), 2.0);
  EXPECT_EQ(sums.at("cond_row", 0, 0, int{kRowPa}), 0.0);
}

TEST(Conditioning, IndexerSumsSizesInsideTheRange) {
  TensorPool pool;
  IndexerOp op;
  op.query = pool.values(DType::kF32, {1, 2, 2}, {1, -1, 2, 0});
  op.key = pool.values(DType::kF32, {2, 2}, {3, 4, 5, 6});
  op.weights = pool.values(DType::kF32, {1, 2}, {-2, 1});
  op.k_start = pool.values(DType::kI32, {1}, {0});
  op.k_end = pool.values(DType::kI32, {1}, {1});
  const Sums sums(op);
  expect_just_above(sums.at("cond_ix", 0, 0), 2 * (3 + 4) + 6);
  EXPECT_EQ(sums.at("cond_ix", 0, 1), 0.0);
}

TEST(Conditioning, CacheWritesHaveNone) {
  TensorPool pool;
  CacheWriteOp op;
  op.key = op.value = pool.zeros(DType::kF32, {1, 1, 1});
  op.slot_mapping = pool.values(DType::kI64, {1}, {0});
  op.cache.layout = KvLayout::kPaged;
  op.cache.key = pool.zeros(DType::kF32, {1, 1, 1, 1});
  op.cache.value = pool.zeros(DType::kF32, {1, 1, 1, 1});
  EXPECT_TRUE(conditioning_specs(AttentionProblem(op)).empty());
}

}  // namespace
}  // namespace attn
