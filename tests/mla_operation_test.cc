// The operations on latent caches. The caches of these cases hold their place in memory.
#include <gtest/gtest.h>

#include "attn/case_file.h"
#include "tests/case_builder.h"

namespace attn {
namespace {

using nlohmann::json;

void expect_error(CaseBuilder builder, const std::function<void(CaseBuilder& b)>& change,
                  const std::string& expected) {
  EXPECT_EQ(problem_error(builder), "");
  change(builder);
  EXPECT_EQ(problem_error(builder), expected);
}

// 2 requests, 3 tokens, 2 heads, latent 6 and rope 2, 4 blocks of 2 slots.
CaseBuilder absorbed(const std::string& op = "mla") {
  CaseBuilder b(op);
  b.object["axes"] = {{"num_reqs", 2},     {"num_tokens", 3}, {"num_heads", 2},
                      {"num_kv_heads", 1}, {"head_size", 8},  {"head_size_v", 6}};
  b.object["attrs"] = {{"kv_layout", "paged"},  {"block_size", 2},   {"scale", "0x1p-1"},
                       {"causal", false},       {"kv_lora_rank", 6}, {"qk_rope_head_dim", 2},
                       {"mla_form", "absorbed"}};
  b.input("query", DType::kF32, {3, 2, 8});
  b.input("query_start_loc", DType::kI32, {3}, {0, 2, 3});
  b.input("seq_lens", DType::kI32, {2}, {3, 2});
  b.input("kv_cache", DType::kF32, {4, 2, 8}, counting(64));
  b.input("block_table", DType::kI32, {2, 2}, {3, 0, 1, -1});
  b.describe("outputs", "out", DType::kF64, {3, 2, 6});
  b.describe("outputs", "lse", DType::kF64, {2, 3});
  return b;
}

CaseBuilder expanded() {
  CaseBuilder b = absorbed();
  b.object["attrs"]["mla_form"] = "expanded";
  b.object["attrs"]["qk_nope_head_dim"] = 5;
  b.object["attrs"]["exec"] = {{"num_splits", 2}};
  b.object["axes"]["head_size"] = 7;
  b.object["axes"]["head_size_v"] = 3;
  b.input("query", DType::kF32, {3, 2, 7});
  b.input("w_uk", DType::kF32, {6, 2, 5}, counting(60));
  b.input("w_uv", DType::kF32, {6, 2, 3}, counting(36));
  b.describe("outputs", "out", DType::kF64, {3, 2, 3});
  return b;
}

CaseBuilder sparse() {
  CaseBuilder b = absorbed("mla_sparse");
  b.object["attrs"]["topk_index_space"] = "slot";
  b.object["attrs"]["lse_includes_sink"] = false;
  b.object["attrs"].erase("causal");
  b.input("topk_indices", DType::kI32, {3, 2}, {0, 1, 2, 3, 4, -1});
  b.input("topk_lens", DType::kI32, {3}, {2, 2, 1});
  b.input("sinks", DType::kF32, {2}, {0.5, 1.5});
  return b;
}

CaseBuilder latent_cache_write() {
  CaseBuilder b("mla_cache_write");
  b.object["axes"] = {{"num_tokens", 2}, {"num_blocks", 4}};
  b.object["attrs"] = {{"block_size", 2},
                       {"kv_cache_dtype", "fp8_e4m3"},
                       {"kv_lora_rank", 6},
                       {"qk_rope_head_dim", 2}};
  b.input("kv_c", DType::kBF16, {3, 6}, counting(18));
  b.input("k_pe", DType::kBF16, {3, 2}, counting(6));
  b.input("slot_mapping", DType::kI64, {2}, {5, -1});
  b.input("kv_cache", DType::kF8E4M3FN, {4, 2, 8});
  b.input("k_scale", DType::kF32, {1}, {0.5});
  b.describe("outputs", "kv_cache_after", DType::kF8E4M3FN, {4, 2, 8});
  return b;
}

TEST(MlaOperation, AbsorbedHasItsTensors) {
  const CaseFile file = absorbed().parse();
  const AttentionProblem problem = file.problem();
  const auto& op = std::get<MlaOp>(problem.operation());
  EXPECT_EQ(to_string(op.query), "f32[3,2,8]");
  EXPECT_EQ(int_at(op.query_start_loc, 1), 2);
  EXPECT_EQ(int_at(op.seq_lens, 0), 3);
  EXPECT_EQ(value_at(op.kv_cache, 3, 1, 7), 63.0);
  EXPECT_EQ(int_at(op.block_table, 0, 0), 3);
  EXPECT_EQ(op.encoding, KvEncoding::kPlain);
  EXPECT_EQ(op.scale, 0.5);
  EXPECT_FALSE(op.causal);
  EXPECT_EQ(op.form, MlaForm::kAbsorbed);
  EXPECT_EQ(op.kv_lora_rank, 6);
  EXPECT_EQ(op.qk_rope_head_dim, 2);
  EXPECT_FALSE(op.w_uk.present());
}

TEST(MlaOperation, ExpandedHasItsWeights) {
  const CaseFile file = expanded().parse();
  const AttentionProblem problem = file.problem();
  const auto& op = std::get<MlaOp>(problem.operation());
  EXPECT_EQ(op.form, MlaForm::kExpanded);
  EXPECT_EQ(op.qk_nope_head_dim, 5);
  EXPECT_EQ(value_at(op.w_uk, 5, 1, 4), 59.0);
  EXPECT_EQ(value_at(op.w_uv, 5, 1, 2), 35.0);
  EXPECT_EQ(op.exec, ExecSpec{.num_splits = 2});
  expect_error(
      expanded(), [](auto& b) { b.object["attrs"].erase("qk_nope_head_dim"); },
      "case.attrs.qk_nope_head_dim is missing, mla_form expanded needs it");
  expect_error(
      expanded(), [](auto& b) { b.remove_input("w_uv"); },
      "case.inputs.w_uv is missing, operation mla needs it");
}

TEST(MlaOperation, RejectsWhatContradicts) {
  const auto attr = [](const char* key, const json& value) {
    return [=](CaseBuilder& b) { b.object["attrs"][key] = value; };
  };
  expect_error(absorbed(), attr("block_size", 4),
               "case.attrs.block_size is 4, but the blocks of kv_cache hold 2");
  expect_error(absorbed(), attr("kv_lora_rank", 7),
               "kv_cache is f32[4,2,8], expected shape [?,?,9]");
  expect_error(absorbed(), attr("kv_layout", "varlen"),
               "case.attrs.kv_layout must be paged or absent for operation mla");
  expect_error(absorbed(), attr("kv_cache_dtype", "nvfp4"),
               "case.attrs.kv_cache_dtype nvfp4 does not belong to operation mla");
  expect_error(absorbed(), attr("kv_cache_dtype", "fp8_e4m3"),
               "case.attrs.kv_cache_dtype is fp8_e4m3, but kv_cache is f32[4,2,8], expected "
               "f8_e4m3fn");
  expect_error(absorbed(), attr("window_left", 2),
               "case.attrs.window_left does not belong to operation mla");
  expect_error(
      absorbed(),
      [](auto& b) {
        b.input("w_uk", DType::kF32, {6, 2, 5});
      },
      "case.inputs.w_uk does not belong to operation mla");
  expect_error(
      absorbed(), [](auto& b) { b.object["axes"]["num_kv_heads"] = 2; },
      "case.axes.num_kv_heads is 2, the tensors say 1");
  expect_error(
      absorbed(), [](auto& b) { b.object["axes"]["num_tokens"] = 2; },
      "case.axes.num_tokens is 2, the tensors say 3");
  expect_error(
      absorbed(),
      [](auto& b) {
        b.describe("outputs", "out", DType::kF64, {3, 2, 8});
      },
      "case.outputs.out has shape [3,2,8], the answer has [3,2,6]");
}

// Index tensors of the wrong type or without elements are not read.
TEST(MlaOperation, DoesNotReadStartsOfAnotherType) {
  for (const auto& [dtype, shape] : {std::pair(DType::kI8, std::vector<std::int64_t>{3}),
                                     std::pair(DType::kI32, std::vector<std::int64_t>{0})}) {
    CaseBuilder b = absorbed();
    b.input("query_start_loc", dtype, shape);
    EXPECT_NE(problem_error(b), "");
  }
}

TEST(MlaOperation, InlineScalesHaveTheirRows) {
  CaseBuilder b = absorbed();
  b.object["attrs"].update({{"kv_cache_dtype", "fp8_ds_mla"}, {"kv_lora_rank", 512}});
  b.object["attrs"]["qk_rope_head_dim"] = 64;
  b.object["axes"]["head_size"] = 576;
  b.object["axes"]["head_size_v"] = 512;
  b.input("query", DType::kBF16, {3, 2, 576});
  b.input("kv_cache", DType::kU8, {4, 2, 656});
  b.describe("outputs", "out", DType::kF64, {3, 2, 512});
  const CaseFile file = b.parse();
  EXPECT_EQ(std::get<MlaOp>(file.problem().operation()).encoding, KvEncoding::kFp8DsMla);
  expect_error(
      b,
      [](auto& c) {
        c.input("kv_cache", DType::kU8, {4, 2, 576});
      },
      "kv_cache is u8[4,2,576], expected shape [?,?,656]");
  expect_error(
      b, [](auto& c) { c.input("k_scale", DType::kF32, {1}); },
      "case.inputs.k_scale does not belong to operation mla");
}

TEST(MlaOperation, SparseHasItsIndices) {
  const CaseFile file = sparse().parse();
  const AttentionProblem problem = file.problem();
  const auto& op = std::get<MlaSparseOp>(problem.operation());
  EXPECT_EQ(value_at(op.mla.kv_cache, 0, 1, 0), 8.0);
  EXPECT_EQ(int_at(op.topk_indices, 2, 1), -1);
  EXPECT_EQ(int_at(op.topk_lens, 2), 1);
  EXPECT_EQ(op.index_space, TopkIndexSpace::kSlot);
  EXPECT_EQ(value_at(op.sinks, 1), 1.5);
  EXPECT_FALSE(op.lse_includes_sink);
  expect_error(
      sparse(), [](auto& b) { b.object["attrs"]["mla_form"] = "expanded"; },
      "case.attrs.mla_form must be absorbed for operation mla_sparse");
}

TEST(MlaOperation, CacheWriteHasItsTensors) {
  const CaseFile file = latent_cache_write().parse();
  const AttentionProblem problem = file.problem();
  const auto& op = std::get<MlaCacheWriteOp>(problem.operation());
  EXPECT_EQ(value_at(op.kv_c, 2, 5), 17.0);
  EXPECT_EQ(value_at(op.k_pe, 2, 1), 5.0);
  EXPECT_EQ(int_at(op.slot_mapping, 0), 5);
  EXPECT_EQ(to_string(op.kv_cache), "f8_e4m3fn[4,2,8]");
  EXPECT_EQ(value_at(op.k_scale, 0), 0.5);
  expect_error(
      latent_cache_write(),
      [](auto& b) {
        b.describe("outputs", "kv_cache_after", DType::kU8, {4, 2, 8});
      },
      "case.outputs.kv_cache_after is u8 [4,2,8], kv_cache is f8_e4m3fn [4,2,8]");
  expect_error(
      latent_cache_write(),
      [](auto& b) { b.describe("outputs", "key_cache_after", DType::kU8, {4}); },
      "case.outputs.key_cache_after is no answer of operation mla_cache_write");
  expect_error(
      latent_cache_write(),
      [](auto& b) {
        b.object["attrs"]["kv_lora_rank"] = 7;
        b.object["attrs"]["qk_rope_head_dim"] = 1;
      },
      "case.attrs.kv_lora_rank is 7, but kv_c is bf16[3,6]");
  expect_error(
      latent_cache_write(), [](auto& b) { b.object["attrs"]["qk_rope_head_dim"] = 1; },
      "case.attrs.qk_rope_head_dim is 1, but k_pe is bf16[3,2]");
  expect_error(
      latent_cache_write(), [](auto& b) { b.object["axes"]["num_tokens"] = 3; },
      "case.axes.num_tokens is 3, the tensors say 2");
}

}  // namespace
}  // namespace attn
