// From the case object to the operation: where every attribute and tensor goes, and what does not
// belong. Expected values follow from case_builder.h, whose caches hold their place in memory.
#include <gtest/gtest.h>

#include "attn/case_file.h"
#include "tests/case_builder.h"

namespace attn {
namespace {

using nlohmann::json;

struct Change {
  std::function<void(CaseBuilder& b)> change;
  std::string expected;
};

void expect_errors(const std::function<CaseBuilder()>& make, const std::vector<Change>& changes) {
  EXPECT_EQ(problem_error(make()), "");
  for (const Change& change : changes) {
    CaseBuilder builder = make();
    change.change(builder);
    EXPECT_EQ(problem_error(builder), change.expected);
  }
}

auto set(const char* key, const json& value) {
  return [=](CaseBuilder& b) { b.object["attrs"][key] = value; };
}

auto set_axis(const char* key, std::int64_t value) {
  return [=](CaseBuilder& b) { b.object["axes"][key] = value; };
}

auto add_input(const char* key, DType dtype, const std::vector<std::int64_t>& shape) {
  return [=](CaseBuilder& b) { b.input(key, dtype, shape); };
}

CaseBuilder varlen() { return varlen_case(); }

TEST(CaseOperation, VarlenAttentionHasItsTensors) {
  CaseBuilder b = varlen_case();
  b.object["attrs"].update(
      {{"window_left", 3},
       {"window_right", 4},
       {"sink_token_length", 1},
       {"attention_chunk_size", 5},
       {"attention_chunk_lookback", 6},
       {"mm_prefix_clamp", true},
       {"logits_soft_cap", "0x1.8p+0"},
       {"alibi_form", "context"},
       {"lse_includes_sink", false},
       {"exec", {{"kv_chunk", 2}, {"common_prefix_len", 0}, {"dcp_size", 3}}}});
  b.input("alibi_slopes", DType::kF32, {2}, {0.5, 0.25});
  b.input("sinks", DType::kF16, {2}, {1, 2});
  b.input("qq_bias", DType::kF32, {2, 2}, {1, 2, 3, 4});
  b.input("attn_mask", DType::kBool, {1, 1, 2, 3}, {1, 1, 0, 1, 1, 1});
  b.input("attn_bias", DType::kBF16, {1, 2, 1, 3}, counting(6));
  b.input("causal_per_req", DType::kBool, {2}, {0, 1});
  b.input("mm_prefix_ranges", DType::kI32, {2, 1, 2}, {0, 1, 0, 0});
  b.input("q_scale", DType::kF32, {1}, {2});
  b.input("k_scale", DType::kF32, {1}, {3});
  b.input("v_scale", DType::kF32, {2, 1}, {4, 5});
  b.input("output_scale", DType::kF32, {1}, {6});
  const CaseFile file = b.parse();
  const AttentionProblem problem = file.problem();
  const AttentionOp& op = *problem.attention();
  EXPECT_EQ(to_string(op.query), "f32[3,2,4]");
  EXPECT_EQ(op.num_tokens(), 3);
  EXPECT_EQ(op.kv.layout, KvLayout::kVarlen);
  EXPECT_EQ(op.kv.encoding, KvEncoding::kPlain);
  EXPECT_EQ(to_string(op.kv.key), "f32[5,1,4]");
  EXPECT_EQ(to_string(op.kv.value), "f32[5,1,2]");
  EXPECT_EQ(int_at(op.kv.kv_start_loc, 1), 3);
  EXPECT_EQ(op.scale, 0.5);
  EXPECT_EQ(op.logits_soft_cap, 1.5);
  EXPECT_TRUE(op.mask.causal);
  EXPECT_EQ(op.mask.window_left, 3);
  EXPECT_EQ(op.mask.window_right, 4);
  EXPECT_EQ(op.mask.sink_token_length, 1);
  EXPECT_EQ(op.mask.attention_chunk_size, 5);
  EXPECT_EQ(op.mask.attention_chunk_lookback, 6);
  EXPECT_TRUE(op.mask.mm_prefix_clamp);
  EXPECT_EQ(int_at(op.mask.mm_prefix_ranges, 0, 0, 1), 1);
  EXPECT_EQ(int_at(op.mask.causal_per_req, 1), 1);
  EXPECT_EQ(int_at(op.mask.attn_mask, 0, 0, 0, 2), 0);
  EXPECT_EQ(op.bias.alibi_form, AlibiForm::kContext);
  EXPECT_EQ(value_at(op.bias.alibi_slopes, 1), 0.25);
  EXPECT_EQ(value_at(op.bias.attn_bias, 0, 1, 0, 2), 5.0);
  EXPECT_EQ(value_at(op.bias.qq_bias, 1, 0), 3.0);
  EXPECT_EQ(value_at(op.sinks, 1), 2.0);
  EXPECT_FALSE(op.lse_includes_sink);
  EXPECT_EQ(value_at(op.q_scale, 0), 2.0);
  EXPECT_EQ(value_at(op.kv.k_scale, 0), 3.0);
  EXPECT_EQ(value_at(op.kv.v_scale, 1, 0), 5.0);
  EXPECT_EQ(value_at(op.output_scale, 0), 6.0);
  EXPECT_EQ(
      op.exec,
      (ExecSpec{.kv_chunk = 2, .common_prefix_len = 0, .has_common_prefix = true, .dcp_size = 3}));
}

TEST(CaseOperation, AbsentAttributesAreOff) {
  const CaseFile file = varlen_case().parse();
  const AttentionProblem problem = file.problem();
  const AttentionOp& op = *problem.attention();
  EXPECT_EQ(op.mask.window_left, MaskSpec::kUnbounded);
  EXPECT_EQ(op.mask.window_right, MaskSpec::kUnbounded);
  EXPECT_EQ(op.mask.attention_chunk_size, 0);
  EXPECT_EQ(op.mask.rswa_window, 0);
  EXPECT_FALSE(op.mask.attn_mask.present());
  EXPECT_EQ(op.bias.alibi_form, AlibiForm::kNone);
  EXPECT_EQ(op.logits_soft_cap, 0.0);
  EXPECT_TRUE(op.lse_includes_sink);
  EXPECT_FALSE(op.exec.any());
}

TEST(CaseOperation, CachesAreViewedInLogicalOrder) {
  // Element (block 3, slot 1, head 0, dim 2) of NHD [4,2,2,4] and of HND [4,2,2,4].
  CaseBuilder b = paged_case();
  const CaseFile nhd = b.parse();
  EXPECT_EQ(value_at(nhd.problem().attention()->kv.key, 3, 1, 0, 2), 3 * 16 + 1 * 8 + 0 * 4 + 2);
  b.object["attrs"]["kv_cache_layout"] = "HND";
  const CaseFile hnd = b.parse();
  const AttentionProblem problem = hnd.problem();
  const KvCacheView& kv = problem.attention()->kv;
  EXPECT_EQ(value_at(kv.key, 3, 1, 0, 2), 3 * 16 + 0 * 8 + 1 * 4 + 2);
  EXPECT_EQ(value_at(kv.value, 3, 1, 0, 1), 3 * 8 + 0 * 4 + 1 * 2 + 1);
  EXPECT_EQ(int_at(kv.block_table, 1, 0), 1);
}

TEST(CaseOperation, HeadsFirstSwapsSlotsAndHeads) {
  CaseBuilder b = paged_case();
  b.object["attrs"]["kv_cache_layout"] = "HND";
  b.object["axes"]["num_kv_heads"] = 1;
  b.input("key_cache", DType::kF32, {4, 1, 2, 4});
  b.input("value_cache", DType::kF32, {4, 1, 2, 2});
  EXPECT_EQ(problem_error(b), "");
  b.object["attrs"]["kv_cache_layout"] = "NHD";
  EXPECT_EQ(problem_error(b), "case.attrs.block_size is 2, but the blocks of key_cache hold 1");
}

CaseBuilder packed() {
  CaseBuilder b = paged_case();
  b.remove_input("key_cache");
  b.remove_input("value_cache");
  b.object["attrs"]["kv_layout"] = "paged_packed";
  b.input("kv_cache", DType::kF32, {4, 2, 2, 6}, counting(96));
  return b;
}

TEST(CaseOperation, PackedRowsHoldKeyThenValue) {
  const CaseFile file = packed().parse();
  const AttentionProblem problem = file.problem();
  const KvCacheView& kv = problem.attention()->kv;
  EXPECT_EQ(kv.layout, KvLayout::kPacked);
  EXPECT_EQ(to_string(kv.key), "f32[4,2,2,4]");
  EXPECT_EQ(to_string(kv.value), "f32[4,2,2,2]");
  EXPECT_EQ(value_at(kv.key, 1, 1, 0, 3), 24 + 12 + 3);
  EXPECT_EQ(value_at(kv.value, 1, 1, 0, 1), 24 + 12 + 4 + 1);
  expect_errors(packed,
                {{set_axis("head_size_v", 3),
                  "kv_cache is f32[4,2,2,6], but head_size 4 and head_size_v 3 make rows of 7"},
                 {set("kv_cache_dtype", "nvfp4"),
                  "case.attrs.kv_cache_dtype nvfp4 is not allowed with kv_layout "
                  "paged_packed"},
                 {set("kv_cache_dtype", "fp8_e4m3"),
                  "case.attrs.kv_cache_dtype is fp8_e4m3, but kv_cache is f32[4,2,2,4], "
                  "expected f8_e4m3fn"},
                 {add_input("key_cache", DType::kF32, {4, 2, 2, 4}),
                  "case.inputs.key_cache does not belong to operation attention"}});
}

TEST(CaseOperation, DeclaredAxesMustBeThoseOfTheTensors) {
  expect_errors(
      paged_case,
      {
          {set_axis("num_reqs", 3), "case.axes.num_reqs is 3, the tensors say 2"},
          {set_axis("num_tokens", 4), "case.axes.num_tokens is 4, the tensors say 3"},
          {set_axis("num_heads", 1), "case.axes.num_heads is 1, the tensors say 2"},
          {set_axis("num_kv_heads", 1), "case.axes.num_kv_heads is 1, the tensors say 2"},
          {set_axis("head_size", 5), "case.axes.head_size is 5, the tensors say 4"},
          {set_axis("head_size_v", 4), "case.axes.head_size_v is 4, the tensors say 2"},
          {set_axis("num_blocks", 4), ""},
          {set_axis("num_blocks", 5), "case.axes.num_blocks is 5, the tensors say 4"},
          {set_axis("num_parts", 1), "case.axes.num_parts does not belong to operation attention"},
          {set("block_size", 4), "case.attrs.block_size is 4, but the blocks of key_cache hold 2"},
      });
}

TEST(CaseOperation, AnswersMustBeThoseOfTheOperation) {
  const auto output = [](const char* name, DType dtype, const std::vector<std::int64_t>& shape) {
    return [=](CaseBuilder& b) { b.describe("outputs", name, dtype, shape); };
  };
  expect_errors(
      varlen,
      {
          {output("out", DType::kBF16, {3, 2, 2}), ""},
          {output("out", DType::kBF16, {3, 2, 4}),
           "case.outputs.out has shape [3,2,4], the answer has [3,2,2]"},
          {output("lse", DType::kF32, {3, 2}),
           "case.outputs.lse has shape [3,2], the answer has [2,3]"},
          {output("logits", DType::kF32, {3, 2}),
           "case.outputs.logits is no answer of operation attention"},
          {output("kv_cache_after", DType::kF32, {3, 2}),
           "case.outputs.kv_cache_after is no answer of operation attention"},
          {output("out_codes", DType::kF8E4M3FN, {3, 2, 2}),
           "case.outputs.out_codes is no answer of operation attention without output_scale"},
          {[](auto& b) {
             b.add("truth", "logits", b.pool.zeros(DType::kF64, {3, 2}), "truth_");
           },
           "case.truth.logits is no answer of operation attention"},
      });
  CaseBuilder b = varlen_case();
  b.input("output_scale", DType::kF32, {1}, {1});
  b.describe("outputs", "out_codes", DType::kF8E4M3FN, {3, 2, 2});
  EXPECT_EQ(problem_error(b), "");
}

TEST(CaseOperation, WhatDoesNotBelongIsAnError) {
  expect_errors(
      varlen,
      {
          {set("block_size", 2),
           "case.attrs.block_size does not belong to operation attention with kv_layout varlen"},
          {set("kv_cache_layout", "NHD"),
           "case.attrs.kv_cache_layout does not belong to operation attention with kv_layout "
           "varlen"},
          {set("lse_base", "e"),
           "case.attrs.lse_base does not belong to operation attention with kv_layout varlen"},
          {add_input("block_table", DType::kI32, {2, 1}),
           "case.inputs.block_table does not belong to operation attention with kv_layout varlen"},
          {add_input("w_uk", DType::kF32, {2, 1, 1}),
           "case.inputs.w_uk does not belong to operation attention with kv_layout varlen"},
          {add_input("rswa_prefix_lens", DType::kI32, {2}),
           "rswa_prefix_lens is given, but rswa_window is not"},
          {add_input("alibi_slopes", DType::kF32, {2}),
           "alibi_slopes is given, but alibi_form is not"},
          {set("alibi_form", "row"), "alibi_slopes is absent, expected shape [2]"},
          {add_input("k_scale_cache", DType::kF32, {1, 1, 1}),
           "k_scale_cache is given, but the cache has no scale per token and head"},
          {set("scale", "nan"), "scale is nan, must be finite"},
          {set("logits_soft_cap", "inf"), "logits_soft_cap is inf, must be finite"},
          {add_input("query", DType::kF32, {3, 8}), "query is f32[3,8], expected 3 axes"},
          {add_input("query_start_loc", DType::kI64, {3}),
           "query_start_loc is i64[3], expected i32"},
      });
}

TEST(CaseOperation, StoredTypesMustFitTheCacheType) {
  const auto quantised = [](DType dtype, const char* kv_cache_dtype) {
    CaseBuilder b = varlen_case();
    b.input("key", dtype, {5, 1, 4});
    b.input("value", dtype, {5, 1, 2});
    b.object["attrs"]["kv_cache_dtype"] = kv_cache_dtype;
    return problem_error(b);
  };
  EXPECT_EQ(quantised(DType::kF8E4M3FN, "auto"), "");
  EXPECT_EQ(quantised(DType::kF8E4M3FN, "fp8_e4m3"), "");
  EXPECT_EQ(quantised(DType::kF8E5M2, "fp8_e5m2"), "");
  EXPECT_EQ(quantised(DType::kF8E4M3FNUZ, "fp8_e4m3fnuz"), "");
  EXPECT_EQ(quantised(DType::kF8E4M3FN, "fp8_e5m2"),
            "case.attrs.kv_cache_dtype is fp8_e5m2, but key is f8_e4m3fn[5,1,4], expected f8_e5m2");
  EXPECT_EQ(quantised(DType::kI8, "int8_per_token_head"),
            "a cache with a scale per token or block must be paged");
  EXPECT_EQ(quantised(DType::kU8, "fp8_ds_mla"), "fp8_ds_mla is no cache of attention");
  EXPECT_NE(quantised(DType::kI8, "auto"), "");
}

TEST(CaseOperation, PerTokenHeadAndNvfp4CachesHaveTheirScales) {
  CaseBuilder b = paged_case();
  b.object["attrs"]["kv_cache_dtype"] = "int8_per_token_head";
  b.input("key_cache", DType::kI8, {4, 2, 2, 4});
  b.input("value_cache", DType::kI8, {4, 2, 2, 2});
  b.input("k_scale_cache", DType::kF32, {4, 2, 2}, counting(16));
  EXPECT_EQ(problem_error(b), "v_scale_cache is absent, expected shape [4,2,2]");
  b.input("v_scale_cache", DType::kF32, {4, 2, 2}, counting(16));
  const CaseFile file = b.parse();
  EXPECT_EQ(file.problem().attention()->kv.encoding, KvEncoding::kPerTokenHead);
  EXPECT_EQ(value_at(file.problem().attention()->kv.v_scale_cache, 3, 1, 1), 15.0);
  b.object["attrs"]["kv_cache_dtype"] = "fp8_per_token_head";
  EXPECT_EQ(problem_error(b),
            "case.attrs.kv_cache_dtype is fp8_per_token_head, but key_cache is i8[4,2,2,4], "
            "expected f8_e4m3fn");

  CaseBuilder nvfp4 = paged_case();
  nvfp4.object["attrs"]["kv_cache_dtype"] = "nvfp4";
  nvfp4.object["axes"]["head_size"] = 16;
  nvfp4.object["axes"]["head_size_v"] = 32;
  nvfp4.describe("outputs", "out", DType::kF64, {3, 2, 32});
  nvfp4.input("query", DType::kF32, {3, 2, 16});
  nvfp4.input("key_cache", DType::kF4E2M1, {4, 2, 2, 8});
  nvfp4.input("value_cache", DType::kF4E2M1, {4, 2, 2, 16});
  nvfp4.input("k_block_scale", DType::kF8E4M3FN, {4, 2, 2, 1});
  nvfp4.input("v_block_scale", DType::kF8E4M3FN, {4, 2, 2, 2});
  nvfp4.input("k_global_scale", DType::kF32, {1}, {2});
  nvfp4.input("v_global_scale", DType::kF32, {1}, {3});
  const CaseFile nvfp4_file = nvfp4.parse();
  const AttentionProblem problem = nvfp4_file.problem();
  EXPECT_EQ(problem.attention()->kv.encoding, KvEncoding::kNvfp4);
  EXPECT_EQ(problem.attention()->head_size_v(), 32);
  EXPECT_EQ(value_at(problem.attention()->kv.v_global_scale, 0), 3.0);
}

CaseBuilder differential() {
  CaseBuilder b = varlen_case("differential");
  b.object["attrs"].update(
      {{"diff_lambda", "0x1p-1"}, {"diff_lambda_init", "0x1p-2"}, {"diff_eps", "0x1p-3"}});
  b.object["axes"]["num_heads"] = 4;
  b.object["axes"]["num_kv_heads"] = 2;
  b.input("query", DType::kF32, {3, 4, 4});
  b.input("key", DType::kF32, {5, 2, 4});
  b.input("value", DType::kF32, {5, 2, 2});
  b.input("diff_norm_weight", DType::kF32, {4}, {1, 2, 3, 4});
  b.object["outputs"].erase("lse");
  b.describe("outputs", "out", DType::kF64, {3, 2, 4});
  return b;
}

TEST(CaseOperation, DifferentialIsVarlenAttentionWithItsOwnNumbers) {
  const CaseFile file = differential().parse();
  const AttentionProblem problem = file.problem();
  const auto& op = std::get<DifferentialOp>(problem.operation());
  EXPECT_EQ(op.lambda, 0.5);
  EXPECT_EQ(op.lambda_init, 0.25);
  EXPECT_EQ(op.eps, 0.125);
  EXPECT_EQ(value_at(op.norm_weight, 3), 4.0);
  EXPECT_EQ(op.attention.scale, 0.5);
  EXPECT_EQ(to_string(op.attention.kv.value), "f32[5,2,2]");
  const auto output = [](const char* name, const std::vector<std::int64_t>& shape) {
    return [=](CaseBuilder& b) { b.describe("outputs", name, DType::kF64, shape); };
  };
  expect_errors(
      differential,
      {{output("out", {3, 4, 2}), "case.outputs.out has shape [3,4,2], the answer has [3,2,4]"},
       {output("lse", {4, 3}), "case.outputs.lse is no answer of operation differential"},
       {add_input("sinks", DType::kF32, {4}),
        "case.inputs.sinks does not belong to operation differential"},
       {set("kv_layout", "paged"),
        "case.attrs.kv_layout must be varlen for operation differential"},
       {add_input("query_start_loc", DType::kI64, {3}), "query_start_loc is i64[3], expected i32"},
       {add_input("seq_lens", DType::kI32, {2}),
        "kv_start_loc[1] gives request 0 a length of 3, seq_lens[0] is 0"}});
}

}  // namespace
}  // namespace attn
