#include "attn/builder_group.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "attn/error.h"
#include "attn/graph_mode.h"
#include "attn/layout_resolution.h"
#include "attn/vllm_error.h"

namespace attn {
namespace {

using enum GraphSupport;
using enum GraphMode;
using enum CacheLayout;

std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const VllmError& error) {
    return error.type() + ": " + error.what();
  }
  return "";
}

TEST(KernelBlockTable, EveryBlockBecomesItsKernelBlocks) {
  const BlockTable table = {2, {16, 2, 6, 16}};
  EXPECT_EQ(kernel_block_table(table, 64, 32, 0), (BlockTable{4, {32, 33, 4, 5, 12, 13, 32, 33}}));
  EXPECT_EQ(kernel_block_table(table, 64, 32, 8),
            (BlockTable{4, {128, 129, 16, 17, 48, 49, 128, 129}}));
  EXPECT_EQ(kernel_block_table(table, 64, 64, 8), table);
  EXPECT_THROW(kernel_block_table(table, 64, 48, 0), Error);
  EXPECT_THROW(kernel_block_table(table, 64, 0, 0), Error);
  EXPECT_THROW(kernel_block_table(table, 64, 32, -1), Error);
  EXPECT_THROW(kernel_block_table({1, {2147483647}}, 64, 32, 0), Error);
}

TEST(ReorderThreshold, SpeculationRaisesContextParallelLowers) {
  const SpeculativeDecoding three = {.configured = true, .num_tokens = 3};
  EXPECT_EQ(max_decode_query_len(three, false), 4);
  EXPECT_EQ(max_decode_query_len({true, 3, true}, false), 7);
  EXPECT_EQ(max_decode_query_len({true, 3, true}, true), 4);
  EXPECT_EQ(max_decode_query_len({false, 3, true}, true), 1);
  EXPECT_EQ(max_decode_query_len({true, std::nullopt, true}, false), 1);
  ReorderRequest request = {.wanted = 1, .supports_spec_as_decode = true, .speculative = three};
  EXPECT_EQ(reorder_threshold(request), 4);
  request.wanted = 6;
  EXPECT_EQ(reorder_threshold(request), 6);
  request.decode_context_parallel_size = 2;
  EXPECT_EQ(reorder_threshold(request), 1);
  request.supports_dcp_with_varlen = true;
  EXPECT_EQ(reorder_threshold(request), 6);
  request.wanted.reset();
  EXPECT_EQ(reorder_threshold(request), std::nullopt);
  const std::optional<int> groups[] = {std::nullopt, 4, 2};
  EXPECT_EQ(common_reorder_threshold(groups), 2);
  EXPECT_EQ(common_reorder_threshold(std::span(groups, 1)), std::nullopt);
}

TEST(BuilderPlan, WidthIsAlignedInFrameworkBlocks) {
  BuilderGroup group = {.block_size = 16,
                        .backend = {"B", {multiple_of(16)}},
                        .requires_block_table_width = true,
                        .max_model_len = 5000,
                        .max_num_seqs = 4};
  // 313 blocks, in steps of 128 / gcd(128, 16) = 8.
  BuilderPlan plan = plan_builders(group);
  EXPECT_EQ(plan.block_table_width, 320);
  EXPECT_EQ(plan.builder_block_size, 16);
  EXPECT_FALSE(plan.kernel_block_size.has_value());
  group.block_size = 64;
  group.group_kernel_block_size = 32;
  group.backend.sizes = {{16, false}};
  group.num_metadata_builders = 2;
  plan = plan_builders(group);  // 79 blocks, in steps of 2; four kernel blocks each
  EXPECT_EQ(plan.block_table_width, 320);
  EXPECT_EQ(plan.kernel_block_size, 16);
  EXPECT_EQ(plan.kernel_block_table_shape, (std::array<std::int64_t, 3>{2, 4, 320}));
  group.backend.sizes = {{24, false}};
  EXPECT_EQ(text_of([&] { plan_builders(group); }),
            "ValueError: No common block size for 32 (B: [24]).");
  group.group_kernel_block_size.reset();
  EXPECT_EQ(plan_builders(group).block_table_width, 80);
  group.block_size = 0;
  EXPECT_THROW(plan_builders(group), Error);
}

TEST(GraphSupport, TheWeakestGroupIsNamedTheFirstOfEqualOnes) {
  const GroupGraphSupport groups[] = {{"A", kAlways, std::nullopt},
                                      {"B", kUniformBatch, 4},
                                      {"C", kUniformBatch, std::nullopt},
                                      {"D", kNever, 8}};
  EXPECT_EQ(weakest_graph_support(std::span(groups, 1)).backend, std::nullopt);
  EXPECT_EQ(weakest_graph_support(std::span(groups, 3)).backend, "B");
  EXPECT_EQ(weakest_graph_support(groups).backend, "D");
  EXPECT_EQ(weakest_graph_support(groups).level, kNever);
  EXPECT_FALSE(missing_varlen_support(std::span(groups, 2), 4).has_value());
  EXPECT_EQ(missing_varlen_support(std::span(groups, 2), 5)->max_query_len, 4);
  EXPECT_EQ(missing_varlen_support(groups, 4)->backend, "C");
  EXPECT_EQ(missing_varlen_support(std::span(groups + 3, 1), 1)->max_query_len, std::nullopt);
}

TEST(GraphMode, FullGraphsAreForBatchesThatCanReplay) {
  const WeakestGraphSupport batch = {kUniformBatch, "B"};
  const WeakestGraphSupport single = {kUniformSingleTokenDecode, "B"};
  const WeakestGraphSupport never = {kNever, "B"};
  EXPECT_EQ(resolve_graph_mode({.mode = kFull}, {}), kFull);
  EXPECT_EQ(resolve_graph_mode({.mode = kFull, .attention_is_split = true}, batch),
            kFullAndPiecewise);
  EXPECT_EQ(resolve_graph_mode({.mode = kFull}, batch), kFullDecodeOnly);
  EXPECT_EQ(text_of([&] { resolve_graph_mode({.mode = kFull}, never); }),
            "ValueError: CUDAGraphMode.FULL is not supported with B backend (support: "
            "AttentionCGSupport.NEVER); please try cudagraph_mode=PIECEWISE, and make sure "
            "compilation mode is VLLM_COMPILE");
  EXPECT_EQ(resolve_graph_mode({.mode = kFullDecodeOnly, .graph_partition = true}, never), kNone);
  EXPECT_EQ(resolve_graph_mode({.mode = kFullDecodeOnly, .compiled = true, .graph_partition = true},
                               never),
            kPiecewise);
  EXPECT_EQ(resolve_graph_mode({.mode = kFullDecodeOnly, .uniform_decode_query_len = 2}, single),
            kNone);
  EXPECT_EQ(resolve_graph_mode({.mode = kFullDecodeOnly, .uniform_decode_query_len = 2}, batch),
            kFullDecodeOnly);
  EXPECT_EQ(resolve_graph_mode({.mode = kPiecewise, .piecewise_capture_available = false}, {}),
            kNone);
  EXPECT_EQ(
      resolve_graph_mode({.mode = kFullAndPiecewise, .piecewise_capture_available = false}, {}),
      kFullDecodeOnly);
  EXPECT_EQ(resolve_graph_mode({.mode = kNone}, never), kNone);
}

LayoutRequest request_of(const std::vector<CacheLayouts>& supported,
                         const std::vector<CachePages>& pages = {}) {
  LayoutRequest request;
  request.supported = supported;
  request.pages = pages;
  return request;
}

TEST(LayoutResolution, WorkersDecideWishesChoose) {
  const std::vector<CacheLayouts> supported(2, {kLHBNC, kBLNHC, kLBHNC});
  LayoutRequest request = request_of(supported);
  EXPECT_EQ(resolve_kv_cache_layout(request).layout, kLHBNC);
  request.connector = "NHD";  // LBNHC, which is none of them
  EXPECT_EQ(resolve_kv_cache_layout(request).layout, kLHBNC);
  EXPECT_TRUE(resolve_kv_cache_layout(request).warning.has_value());
  request.connector = "HND";
  EXPECT_EQ(resolve_kv_cache_layout(request).layout, kLBHNC);
  EXPECT_FALSE(resolve_kv_cache_layout(request).warning.has_value());
  request.requested = "BLNHC";
  EXPECT_EQ(resolve_kv_cache_layout(request).layout, kBLNHC);
  request.requested = "NHD";
  EXPECT_EQ(text_of([&] { resolve_kv_cache_layout(request); }),
            "ValueError: VLLM_KV_CACHE_LAYOUT=NHD does not satisfy every supported set; valid "
            "layouts: ['LHBNC', 'BLNHC', 'LBHNC'].");
  request.recorded = kBHLNC;
  EXPECT_EQ(resolve_kv_cache_layout(request).layout, kBHLNC);
}

TEST(LayoutResolution, ShapesNarrowTheChoice) {
  const std::vector<CacheLayouts> supported = {{kLHBNC, kLBHNC, kBLNHC, kBHLNC}};
  std::vector<CachePages> pages = {{8, 16, 4096, true}, {8, 16, 8192, true}};
  EXPECT_EQ(resolve_kv_cache_layout(request_of(supported, pages)).layout, kLBHNC);
  pages[1].dcp_sharded = false;  // and pages of two sizes: B outermost
  EXPECT_EQ(resolve_kv_cache_layout(request_of(supported, pages)).layout, kBLNHC);
  pages[1] = {16, 8, 4096, false};  // another shape of one size
  EXPECT_EQ(resolve_kv_cache_layout(request_of(supported, pages)).layout, kLBHNC);
  const std::vector<CacheLayouts> layers_first = {{kLBHNC}};
  pages[1] = {8, 16, 8192, false};
  EXPECT_EQ(text_of([&] { resolve_kv_cache_layout(request_of(layers_first, pages)); }),
            "ValueError: DCP with a replicated draft and mixed KV page sizes requires a "
            "block-outer KV cache layout; supported sets: [['LBHNC']].");
}

TEST(LayoutResolution, WorkersMustAgree) {
  EXPECT_EQ(text_of([] { resolve_kv_cache_layout({}); }),
            "AssertionError: No worker reported supported KV cache layouts.");
  const std::vector<CacheLayouts> differ = {{kLBHNC, kBLNHC}, {kBLNHC, kLBHNC}};
  EXPECT_EQ(text_of([&] { resolve_kv_cache_layout(request_of(differ)); }),
            "AssertionError: Workers disagree on supported KV cache layouts: [['LBHNC', 'BLNHC'], "
            "['BLNHC', 'LBHNC']].");
}

TEST(LayoutResolution, WhatIsRecordedStays) {
  std::optional<CacheLayout> recorded;
  record_kv_cache_layout(recorded, kLBHNC);
  EXPECT_NO_THROW(record_kv_cache_layout(recorded, kLBHNC));
  EXPECT_EQ(text_of([&] { record_kv_cache_layout(recorded, kBLHNC); }),
            "ValueError: KV cache layout is already resolved to LBHNC; cannot change it to BLHNC.");
}

}  // namespace
}  // namespace attn
