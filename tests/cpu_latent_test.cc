// Backend CPU answers absorbed latent attention over plain caches.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "attn/cpu_backend.h"
#include "tests/cpu_definition.h"
#include "tests/tensor_pool.h"

namespace attn {
namespace {

constexpr std::int64_t kLatent = 5;
constexpr std::int64_t kRope = 3;
constexpr std::int64_t kRow = kLatent + kRope;

// Values that differ everywhere, exact in every type of the tests.
double value_of(std::int64_t i) { return static_cast<double>((i * 7 + i / 5 * 3) % 17 - 8) * 0.25; }

struct Latent {
  explicit Latent(DType dtype, double k_scale = 1.0) {
    std::vector<double> query, rows;
    for (std::int64_t i = 0; i < 3 * 2 * kRow; ++i) query.push_back(value_of(i + 11));
    for (std::int64_t i = 0; i < 4 * 4 * kRow; ++i) rows.push_back(value_of(i));
    op.query = pool.values(DType::kF32, {3, 2, kRow}, query);
    op.query_start_loc = pool.values(DType::kI32, {3}, {0, 2, 3});
    op.seq_lens = pool.values(DType::kI32, {2}, {7, 3});
    op.kv_cache = pool.values(dtype, {4, 4, kRow}, rows);
    op.block_table = pool.values(DType::kI32, {2, 2}, {3, 1, 0, 2147480000});
    if (k_scale != 1.0) op.k_scale = pool.values(DType::kF32, {1}, {k_scale});
    op.scale = 0.5;
    op.kv_lora_rank = kLatent;
    op.qk_rope_head_dim = kRope;
    for (double& x : rows) x *= k_scale;
    rows_ = rows;
  }

  // The same question as attention over copies of the rows, one KV head.
  cpu_tests::Answer expected() {
    AttentionOp attention;
    attention.query = op.query;
    attention.query_start_loc = op.query_start_loc;
    attention.seq_lens = op.seq_lens;
    std::vector<double> latent;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (static_cast<std::int64_t>(i) % kRow < kLatent) latent.push_back(rows_[i]);
    }
    attention.kv.layout = KvLayout::kPaged;
    attention.kv.key = pool.values(DType::kF32, {4, 4, 1, kRow}, rows_);
    attention.kv.value = pool.values(DType::kF32, {4, 4, 1, kLatent}, latent);
    attention.kv.block_table = op.block_table;
    attention.scale = op.scale;
    attention.mask.causal = op.causal;
    return cpu_tests::define(attention);
  }

  TensorPool pool;
  MlaOp op;
  std::vector<double> rows_;  // as read
};

void expect_answered(Latent& latent) {
  const AttentionProblem problem(latent.op);
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  ASSERT_EQ(backend->supports(problem), std::vector<std::string>{});
  Outputs outputs;
  outputs.out = latent.pool.zeros(DType::kF32, {3, 2, kLatent});
  outputs.lse = latent.pool.zeros(DType::kF32, {2, 3});
  run_once(*backend, problem, outputs);
  const cpu_tests::Answer expected = latent.expected();
  for (std::int64_t t = 0; t < 3; ++t) {
    for (std::int64_t h = 0; h < 2; ++h) {
      EXPECT_NEAR(value_at(outputs.lse, h, t), expected.lse[static_cast<std::size_t>(h * 3 + t)],
                  1e-5);
      for (std::int64_t d = 0; d < kLatent; ++d) {
        const auto at = static_cast<std::size_t>((t * 2 + h) * kLatent + d);
        EXPECT_NEAR(value_at(outputs.out, t, h, d), expected.out[at], 1e-5) << t << h << d;
      }
    }
  }
}

TEST(CpuLatent, RowsAreKeysAndTheirLatentPartIsTheValue) {
  Latent latent(DType::kF32);
  expect_answered(latent);
  latent.op.causal = false;
  expect_answered(latent);
}

TEST(CpuLatent, OneScaleAppliesToKeysAndValues) {
  Latent latent(DType::kF8E4M3FN, 1.5);
  expect_answered(latent);
}

TEST(CpuLatent, SplitsAreHonoured) {
  Latent latent(DType::kBF16);
  latent.op.exec.kv_chunk = 2;
  expect_answered(latent);
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Outputs outputs;
  outputs.lse = latent.pool.zeros(DType::kF32, {2, 3});
  EXPECT_EQ(run_once(*backend, AttentionProblem(latent.op), outputs), latent.op.exec);
}

TEST(CpuLatent, OtherFormsAreReasons) {
  Latent latent(DType::kF32);
  latent.op.form = MlaForm::kExpanded;
  latent.op.qk_nope_head_dim = kLatent;
  latent.op.w_uk = latent.pool.zeros(DType::kF32, {kLatent, 2, kLatent});
  latent.op.w_uv = latent.pool.zeros(DType::kF32, {kLatent, 2, 4});
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  EXPECT_EQ(backend->supports(AttentionProblem(latent.op)),
            std::vector<std::string>{"mla_form expanded not supported"});

  Latent codes(DType::kF32);
  codes.op.query = codes.pool.zeros(DType::kF64, {3, 2, kRow});
  EXPECT_EQ(backend->supports(AttentionProblem(codes.op)),
            std::vector<std::string>{"query dtype f64 not supported"});
}

}  // namespace
}  // namespace attn
