#include <gtest/gtest.h>

#include "attn/case_file.h"
#include "tests/case_builder.h"

namespace attn {
namespace {

CaseBuilder indexer() {
  CaseBuilder b("indexer");
  b.object["axes"] = {{"num_tokens", 2}, {"num_heads", 3}, {"head_size", 4}, {"num_keys", 5}};
  b.input("query", DType::kF32, {2, 3, 4});
  b.input("key", DType::kF8E4M3FN, {5, 4});
  b.input("k_scale", DType::kF32, {5}, counting(5));
  b.input("weights", DType::kF32, {2, 3}, counting(6));
  b.input("k_start", DType::kI32, {2}, {0, 1});
  b.input("k_end", DType::kI32, {2}, {4, 5});
  b.describe("outputs", "logits", DType::kF32, {2, 5});
  return b;
}

TEST(IndexerOperation, HasItsTensors) {
  const CaseFile file = indexer().parse();
  const AttentionProblem problem = file.problem();
  const auto& op = std::get<IndexerOp>(problem.operation());
  EXPECT_EQ(to_string(op.query), "f32[2,3,4]");
  EXPECT_EQ(to_string(op.key), "f8_e4m3fn[5,4]");
  EXPECT_EQ(value_at(op.k_scale, 4), 4.0);
  EXPECT_EQ(value_at(op.weights, 1, 2), 5.0);
  EXPECT_EQ(int_at(op.k_start, 1), 1);
  EXPECT_EQ(int_at(op.k_end, 0), 4);
}

TEST(IndexerOperation, RejectsWhatContradicts) {
  const auto error_after = [](const std::function<void(CaseBuilder & b)>& change) {
    CaseBuilder b = indexer();
    change(b);
    return problem_error(b);
  };
  EXPECT_EQ(error_after([](auto& b) { b.object["axes"]["num_keys"] = 4; }),
            "case.axes.num_keys is 4, the tensors say 5");
  EXPECT_EQ(error_after([](auto& b) { b.object["axes"]["num_tokens"] = 3; }),
            "case.axes.num_tokens is 3, the tensors say 2");
  EXPECT_EQ(error_after([](auto& b) { b.object["axes"]["num_reqs"] = 1; }),
            "case.axes.num_reqs does not belong to operation indexer");
  EXPECT_EQ(error_after([](auto& b) { b.object["attrs"]["scale"] = "0x1p+0"; }),
            "case.attrs.scale does not belong to operation indexer");
  EXPECT_EQ(error_after([](auto& b) { b.input("seq_lens", DType::kI32, {2}); }),
            "case.inputs.seq_lens does not belong to operation indexer");
  EXPECT_EQ(error_after([](auto& b) { b.input("weights", DType::kF32, {6}); }),
            "weights is f32[6], expected 2 axes");
  EXPECT_EQ(error_after([](auto& b) {
              b.describe("outputs", "logits", DType::kF32, {5, 2});
            }),
            "case.outputs.logits has shape [5,2], the answer has [2,5]");
}

}  // namespace
}  // namespace attn
