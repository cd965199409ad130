#include <gtest/gtest.h>

#include "attn/case_file.h"
#include "tests/case_builder.h"

namespace attn {
namespace {

// 3 tokens, of which 2 are written; 1 KV head; 4 blocks of 2 slots.
CaseBuilder cache_write() {
  CaseBuilder b("cache_write");
  b.object["axes"] = {{"num_tokens", 2},
                      {"num_kv_heads", 1},
                      {"head_size", 4},
                      {"head_size_v", 3},
                      {"num_blocks", 4}};
  b.object["attrs"] = {{"block_size", 2}, {"kv_cache_dtype", "auto"}};
  b.input("key", DType::kF32, {3, 1, 4}, counting(12));
  b.input("value", DType::kF32, {3, 1, 3}, counting(9));
  b.input("slot_mapping", DType::kI64, {2}, {7, -1});
  b.input("key_cache", DType::kF32, {4, 2, 1, 4}, counting(32));
  b.input("value_cache", DType::kF32, {4, 2, 1, 3}, counting(24));
  b.describe("outputs", "key_cache_after", DType::kF32, {4, 2, 1, 4});
  b.describe("outputs", "value_cache_after", DType::kF32, {4, 2, 1, 3});
  return b;
}

std::string error_after(const std::function<void(CaseBuilder& b)>& change) {
  CaseBuilder builder = cache_write();
  change(builder);
  return problem_error(builder);
}

TEST(CacheWriteOperation, HasItsTensors) {
  const CaseFile file = cache_write().parse();
  const AttentionProblem problem = file.problem();
  const auto& op = std::get<CacheWriteOp>(problem.operation());
  EXPECT_EQ(value_at(op.key, 2, 0, 3), 11.0);
  EXPECT_EQ(value_at(op.value, 2, 0, 2), 8.0);
  EXPECT_EQ(int_at(op.slot_mapping, 1), -1);
  EXPECT_EQ(op.cache.layout, KvLayout::kPaged);
  EXPECT_EQ(value_at(op.cache.key, 3, 1, 0, 3), 31.0);
  EXPECT_EQ(value_at(op.cache.value, 3, 1, 0, 2), 23.0);
}

TEST(CacheWriteOperation, HeadsFirstKeepsTheStoredShapeOfTheAnswer) {
  CaseBuilder b = cache_write();
  b.object["attrs"]["kv_cache_layout"] = "HND";
  b.input("key_cache", DType::kF32, {4, 1, 2, 4}, counting(32));
  b.input("value_cache", DType::kF32, {4, 1, 2, 3}, counting(24));
  EXPECT_EQ(problem_error(b),
            "case.outputs.key_cache_after is f32 [4,2,1,4], key_cache is f32 [4,1,2,4]");
  b.describe("outputs", "key_cache_after", DType::kF32, {4, 1, 2, 4});
  b.describe("outputs", "value_cache_after", DType::kF32, {4, 1, 2, 3});
  const CaseFile file = b.parse();
  EXPECT_EQ(to_string(std::get<CacheWriteOp>(file.problem().operation()).cache.key),
            "f32[4,2,1,4]");
}

TEST(CacheWriteOperation, ScalesFitTheCacheType) {
  CaseBuilder b = cache_write();
  b.object["attrs"]["kv_cache_dtype"] = "fp8_e5m2";
  b.object["outputs"] = nlohmann::json::object();
  b.input("key_cache", DType::kF8E5M2, {4, 2, 1, 4});
  b.input("value_cache", DType::kF8E5M2, {4, 2, 1, 3});
  b.input("k_scale", DType::kF32, {1}, {0.5});
  const CaseFile fp8 = b.parse();
  EXPECT_EQ(value_at(std::get<CacheWriteOp>(fp8.problem().operation()).cache.k_scale, 0), 0.5);

  b.remove_input("k_scale");
  b.object["attrs"]["kv_cache_dtype"] = "int8_per_token_head";
  b.input("key_cache", DType::kI8, {4, 2, 1, 4});
  b.input("value_cache", DType::kI8, {4, 2, 1, 3});
  b.input("k_scale_cache", DType::kF32, {4, 2, 1}, counting(8));
  EXPECT_EQ(problem_error(b),
            "case.inputs.v_scale_cache is missing, operation cache_write needs it");
  b.input("v_scale_cache", DType::kF32, {4, 2, 1}, counting(8));
  b.describe("outputs", "v_scale_cache_after", DType::kF32, {4, 2, 1});
  const CaseFile int8 = b.parse();
  const AttentionProblem problem = int8.problem();
  const KvCacheView& cache = std::get<CacheWriteOp>(problem.operation()).cache;
  EXPECT_EQ(cache.encoding, KvEncoding::kPerTokenHead);
  EXPECT_EQ(value_at(cache.v_scale_cache, 3, 1, 0), 7.0);
}

TEST(CacheWriteOperation, RejectsWhatContradicts) {
  EXPECT_EQ(error_after([](auto& b) { b.object["attrs"]["kv_cache_dtype"] = "nvfp4"; }),
            "case.attrs.kv_cache_dtype nvfp4 does not belong to operation cache_write");
  EXPECT_EQ(error_after([](auto& b) { b.object["attrs"]["kv_cache_dtype"] = "fp8_e4m3"; }),
            "case.attrs.kv_cache_dtype is fp8_e4m3, but key_cache is f32[4,2,1,4], expected "
            "f8_e4m3fn");
  EXPECT_EQ(error_after([](auto& b) { b.object["attrs"]["kv_layout"] = "paged_packed"; }),
            "case.attrs.kv_layout must be paged or absent for operation cache_write");
  EXPECT_EQ(error_after([](auto& b) { b.object["attrs"]["causal"] = true; }),
            "case.attrs.causal does not belong to operation cache_write");
  EXPECT_EQ(error_after([](auto& b) { b.object["attrs"]["block_size"] = 4; }),
            "case.attrs.block_size is 4, but the blocks of key_cache hold 2");
  EXPECT_EQ(error_after([](auto& b) { b.input("k_scale", DType::kF32, {1}, {1}); }),
            "case.inputs.k_scale does not belong to operation cache_write");
  EXPECT_EQ(
      error_after([](auto& b) { b.describe("outputs", "k_scale_cache_after", DType::kF32, {1}); }),
      "case.outputs.k_scale_cache_after is no answer of operation cache_write");
}

}  // namespace
}  // namespace attn
