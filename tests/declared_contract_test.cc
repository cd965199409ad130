// What the backends of this build declare about their arithmetic, resolved.
#include <gtest/gtest.h>

#include <memory>

#include "attn/arithmetic.h"
#include "attn/cpu_backend.h"
#include "attn/reference.h"
#include "attn/second_reference.h"
#include "tests/small_problem.h"

namespace attn {
namespace {

using F = NumberFormat;

// One token, one head, two keys of L = 4 and R = 2.
MlaOp small_mla(TensorPool& pool, DType cache_type, MlaForm form) {
  MlaOp op;
  op.form = form;
  op.kv_lora_rank = 4;
  op.qk_rope_head_dim = 2;
  const bool expanded = form == MlaForm::kExpanded;
  if (expanded) {
    op.qk_nope_head_dim = 3;
    op.w_uk = pool.zeros(DType::kF32, {4, 1, 3});
    op.w_uv = pool.zeros(DType::kF32, {4, 1, 5});
  }
  op.query = pool.zeros(DType::kF32, {1, 1, expanded ? 5 : 6});
  op.query_start_loc = pool.values(DType::kI32, {2}, {0, 1});
  op.seq_lens = pool.values(DType::kI32, {1}, {2});
  op.kv_cache = pool.zeros(cache_type, {1, 2, 6});
  op.block_table = pool.values(DType::kI32, {1, 1}, {0});
  return op;
}

class DeclaredContracts : public testing::Test {
 protected:
  static void expect_equal(const Arithmetic& actual, const Arithmetic& expected) {
    EXPECT_TRUE(actual == expected) << to_json(actual) << "\n" << to_json(expected);
  }
  Arithmetic of_reference(const AttentionProblem& problem) const {
    return resolve(make_reference_backend()->contract(problem));
  }
  Arithmetic of_second(const AttentionProblem& problem) const {
    return resolve(make_second_reference_backend()->contract(problem));
  }

  const Arithmetic reference_ = resolve({"reference"});
  SmallProblem p_;  // lengths 5 and 3
};

TEST_F(DeclaredContracts, ReferenceIsReference) {
  expect_equal(of_reference(p_.problem()), reference_);
  p_.op.sinks = p_.pool.values(DType::kF32, {4}, {1, 1, 1, 1});  // one softmax with the keys
  p_.op.kv.k_scale = p_.op.kv.v_scale = p_.pool.values(DType::kF32, {1}, {0.3});  // exact
  expect_equal(of_reference(p_.problem()), reference_);
}

TEST_F(DeclaredContracts, ReferenceMergesTheMostPartsOfAnyRequest) {
  p_.op.exec.kv_chunk = 2;
  Arithmetic expected = reference_;
  expected.splits = 3;  // keys 0 1 | 2 3 | 4 of the first request
  expected.merge_kind = MergeKind::kLse;
  expected.merge_depth = 2;
  expect_equal(of_reference(p_.problem()), expected);

  p_.op.sinks = p_.pool.values(DType::kF32, {4}, {1, 1, 1, 1});
  expected.splits = 4;
  expected.merge_depth = 3;
  expect_equal(of_reference(p_.problem()), expected);
}

TEST_F(DeclaredContracts, ReferenceMergesASinkWithASinglePart) {
  p_.op.exec.num_splits = 1;
  expect_equal(of_reference(p_.problem()), reference_);
  p_.op.sinks = p_.pool.values(DType::kF32, {4}, {1, 1, 1, 1});
  Arithmetic expected = reference_;
  expected.splits = 2;
  expected.merge_kind = MergeKind::kLse;
  expect_equal(of_reference(p_.problem()), expected);
}

TEST_F(DeclaredContracts, DoublesTimesAScaleAreRounded) {
  p_.op.query = p_.pool.zeros(DType::kF64, {3, 4, 16});
  p_.op.kv.key = p_.pool.zeros(DType::kF64, {5, 4, 2, 16});
  p_.op.kv.value = p_.pool.zeros(DType::kF64, {5, 4, 2, 16});
  expect_equal(of_reference(p_.problem()), reference_);
  EXPECT_EQ(of_second(p_.problem()).key.type, F::kExact);

  p_.op.q_scale = p_.op.kv.k_scale = p_.op.kv.v_scale = p_.pool.values(DType::kF32, {1}, {0.3});
  Arithmetic expected = reference_;
  expected.query.type = expected.key.type = expected.value.type = F::kF64;
  expect_equal(of_reference(p_.problem()), expected);
  EXPECT_EQ(of_second(p_.problem()).query.type, F::kExact);  // to 64 bits, within `dot`
  EXPECT_EQ(of_second(p_.problem()).key.type, F::kF64);
  EXPECT_EQ(of_second(p_.problem()).value.type, F::kF64);
}

TEST_F(DeclaredContracts, ReferenceProjectsInLanes) {
  MlaOp op = small_mla(p_.pool, DType::kF32, MlaForm::kAbsorbed);
  expect_equal(of_reference(AttentionProblem(op)), reference_);
  op = small_mla(p_.pool, DType::kF64, MlaForm::kExpanded);
  op.k_scale = p_.pool.values(DType::kF32, {1}, {0.3});
  Arithmetic expected = reference_;
  expected.key.type = expected.value.type = F::kF64;
  expected.project = {{F::kF64, RoundingMode::kNearest, 8, 0, 0, false, std::nullopt}, {F::kExact}};
  expect_equal(of_reference(AttentionProblem(op)), expected);
}

TEST_F(DeclaredContracts, MergedStatesOfBase2AreConverted) {
  MergeStatesOp op;
  op.out_parts = p_.pool.zeros(DType::kF32, {2, 3, 4, 16});
  op.lse_parts = p_.pool.zeros(DType::kF32, {2, 4, 3});
  Arithmetic expected = reference_;
  expected.scale_roundings = 0;
  expect_equal(of_reference(AttentionProblem(op)), expected);
  EXPECT_EQ(of_second(AttentionProblem(op)).logit_roundings, 0);
  op.lse_base_2 = true;
  expected.logit_roundings = 2;
  expect_equal(of_reference(AttentionProblem(op)), expected);
  EXPECT_EQ(of_second(AttentionProblem(op)).logit_roundings, 1);
}

TEST_F(DeclaredContracts, SecondReferenceSumsInLongDouble) {
  Arithmetic expected = resolve({"f64"});
  expected.dot.inner = 0x1p-63;
  expected.sum.inner = expected.pv.inner = 0x1p-61;
  expect_equal(of_second(p_.problem()), expected);
  p_.op.exec.kv_chunk = 2;  // not honoured
  expect_equal(of_second(p_.problem()), expected);
  const MlaOp op = small_mla(p_.pool, DType::kF32, MlaForm::kExpanded);
  expected.project = {{F::kF64, RoundingMode::kNearest, 1, 0, 0, false, 0x1p-63}, {F::kExact}};
  expect_equal(of_second(AttentionProblem(op)), expected);
}

TEST_F(DeclaredContracts, CpuSumsBlocksInSingle) {
  Arithmetic expected = resolve({"fp32"});
  expected.query.type = expected.key.type = expected.value.type = F::kF32;
  expected.dot.block = expected.sum.block = expected.pv.block = 64;
  expected.dot.fused = expected.pv.fused = false;
  expected.sum.lanes = 8;
  expected.scale_roundings = 2;
  expected.bias_rel = expected.log_abs = 0x1p-50;
  expected.exp_rel = 0x1p-22;
  expected.exp_arg_roundings = 1;
  expected.exp_shift_roundings = 0;
  expected.normalize_roundings = expected.log_roundings = 1;
  expect_equal(resolve(make_cpu_backend()->contract(p_.problem())), expected);
  const MlaOp op = small_mla(p_.pool, DType::kF32, MlaForm::kAbsorbed);
  expect_equal(resolve(make_cpu_backend()->contract(AttentionProblem(op))), expected);

  p_.op.exec.num_splits = 3;
  expected.splits = 3;
  expected.merge_depth = 2;
  expect_equal(resolve(make_cpu_backend()->contract(p_.problem())), expected);
}

TEST_F(DeclaredContracts, AreAmongTheNamesThatCapabilitiesList) {
  for (const auto& make :
       {make_reference_backend, make_second_reference_backend, make_cpu_backend}) {
    const std::unique_ptr<Backend> backend = make();
    EXPECT_EQ(backend->capabilities().contracts,
              std::vector<std::string>{backend->contract(p_.problem()).name});
  }
}

}  // namespace
}  // namespace attn
