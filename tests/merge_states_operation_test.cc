#include <gtest/gtest.h>

#include "attn/case_file.h"
#include "tests/case_builder.h"

namespace attn {
namespace {

CaseBuilder merge_states() {
  CaseBuilder b("merge_states");
  b.object["axes"] = {{"num_parts", 2}, {"num_tokens", 3}, {"num_heads", 4}, {"head_size_v", 5}};
  b.object["attrs"] = {{"lse_base", "2"}};
  b.input("out_parts", DType::kF32, {2, 3, 4, 5}, counting(120));
  b.input("lse_parts", DType::kF32, {2, 4, 3}, counting(24));
  b.describe("outputs", "out", DType::kF64, {3, 4, 5});
  b.describe("outputs", "lse", DType::kF64, {4, 3});
  return b;
}

TEST(MergeStatesOperation, HasItsTensors) {
  CaseBuilder b = merge_states();
  const CaseFile file = b.parse();
  const AttentionProblem problem = file.problem();
  const auto& op = std::get<MergeStatesOp>(problem.operation());
  EXPECT_EQ(value_at(op.out_parts, 1, 2, 3, 4), 119.0);
  EXPECT_EQ(value_at(op.lse_parts, 1, 3, 2), 23.0);
  EXPECT_TRUE(op.lse_base_2);
  b.object["attrs"]["lse_base"] = "e";
  const CaseFile natural = b.parse();
  EXPECT_FALSE(std::get<MergeStatesOp>(natural.problem().operation()).lse_base_2);
}

TEST(MergeStatesOperation, RejectsWhatContradicts) {
  CaseBuilder axes = merge_states();
  axes.object["axes"]["num_parts"] = 3;
  EXPECT_EQ(problem_error(axes), "case.axes.num_parts is 3, the tensors say 2");
  CaseBuilder input = merge_states();
  input.input("sinks", DType::kF32, {4});
  EXPECT_EQ(problem_error(input), "case.inputs.sinks does not belong to operation merge_states");
  CaseBuilder output = merge_states();
  output.describe("outputs", "lse", DType::kF64, {3, 4});
  EXPECT_EQ(problem_error(output), "case.outputs.lse has shape [3,4], the answer has [4,3]");
}

}  // namespace
}  // namespace attn
