#include "attn/capabilities.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/small_problem.h"

namespace attn {
namespace {

using Reasons = std::vector<std::string>;

constexpr std::uint32_t bit(Feature feature) { return static_cast<std::uint32_t>(feature); }

// Everything the small problem and its changes may need.
Capabilities all_capabilities() {
  Capabilities c;
  c.operations = {OpKind::kAttention};
  c.query_dtypes = {DType::kF32};
  c.kv_dtypes = {DType::kF32};
  c.kv_encodings = {KvEncoding::kPlain, KvEncoding::kPerTokenHead, KvEncoding::kNvfp4};
  c.kv_layouts = {KvLayout::kVarlen, KvLayout::kPaged, KvLayout::kPacked};
  c.features = ~0u;
  return c;
}

struct FeatureUse {
  Feature feature;
  std::string name;
  std::string reason;
  std::function<void(SmallProblem&)> use;
};

void use_alibi(SmallProblem& p, AlibiForm form) {
  p.op.bias.alibi_form = form;
  p.op.bias.alibi_slopes = p.pool.zeros(DType::kF32, {4});
}

const FeatureUse kFeatureUses[] = {
    {Feature::kSlidingWindow, "LeftWindow", "sliding window not supported",
     [](SmallProblem& p) { p.op.mask.window_left = 0; }},
    {Feature::kSlidingWindow, "RightWindow", "sliding window not supported",
     [](SmallProblem& p) { p.op.mask.window_right = 0; }},
    {Feature::kSinkTokens, "SinkTokens", "sink tokens not supported",
     [](SmallProblem& p) { p.op.mask.sink_token_length = 1; }},
    {Feature::kChunkedLocal, "ChunkedLocal", "chunked local attention not supported",
     [](SmallProblem& p) { p.op.mask.attention_chunk_size = 2; }},
    {Feature::kRswa, "Rswa", "R-SWA not supported",
     [](SmallProblem& p) {
       p.op.mask.rswa_window = 2;
       p.op.mask.rswa_prefix_lens = p.pool.zeros(DType::kI32, {2});
     }},
    {Feature::kMmPrefix, "MmPrefix", "multimodal prefix ranges not supported",
     [](SmallProblem& p) {
       p.op.mask.mm_prefix_ranges = p.pool.zeros(DType::kI32, {2, 1, 2});
     }},
    {Feature::kAttnMask, "AttnMask", "attention mask not supported",
     [](SmallProblem& p) {
       p.op.mask.attn_mask = p.pool.zeros(DType::kBool, {1, 1, 1, 1});
     }},
    {Feature::kCausalPerRequest, "CausalPerRequest", "causal flag per request not supported",
     [](SmallProblem& p) { p.op.mask.causal_per_req = p.pool.zeros(DType::kBool, {2}); }},
    {Feature::kNonCausal, "NonCausal", "non-causal attention not supported",
     [](SmallProblem& p) { p.op.mask.causal = false; }},
    {Feature::kSoftCap, "SoftCap", "logits soft cap not supported",
     [](SmallProblem& p) { p.op.logits_soft_cap = 30; }},
    {Feature::kAlibi, "AlibiRow", "ALiBi not supported",
     [](SmallProblem& p) { use_alibi(p, AlibiForm::kRow); }},
    {Feature::kAlibi, "AlibiAbs", "ALiBi not supported",
     [](SmallProblem& p) { use_alibi(p, AlibiForm::kAbs); }},
    {Feature::kAlibiSqrt, "AlibiSqrt", "ALiBi sqrt form not supported",
     [](SmallProblem& p) { use_alibi(p, AlibiForm::kSqrt); }},
    {Feature::kAttnBias, "AttnBias", "additive bias not supported",
     [](SmallProblem& p) {
       p.op.bias.attn_bias = p.pool.zeros(DType::kF32, {1, 1, 1, 1});
     }},
    {Feature::kTreeBias, "TreeBias", "tree bias not supported",
     [](SmallProblem& p) {
       p.op.bias.qq_bias = p.pool.zeros(DType::kF32, {2, 2});
     }},
    {Feature::kSinks, "Sinks", "attention sinks not supported",
     [](SmallProblem& p) { p.op.sinks = p.pool.zeros(DType::kF32, {4}); }},
    {Feature::kPerHeadScales, "KeyScalePerHead", "per-head quant scales not supported",
     [](SmallProblem& p) { p.op.kv.k_scale = p.pool.zeros(DType::kF32, {2}); }},
    {Feature::kPerHeadScales, "ValueScalePerRequest", "per-head quant scales not supported",
     [](SmallProblem& p) {
       p.op.kv.v_scale = p.pool.zeros(DType::kF32, {2, 2});
     }},
    {Feature::kQueryScale, "QueryScale", "query scale not supported",
     [](SmallProblem& p) { p.op.q_scale = p.pool.zeros(DType::kF32, {1}); }},
    {Feature::kOutputQuantised, "OutputQuantised", "quantised output not supported",
     [](SmallProblem& p) { p.op.output_scale = p.pool.values(DType::kF32, {1}, {1}); }},
    {Feature::kDifferentHeadSizeV, "DifferentHeadSizeV",
     "head_size_v different from head_size not supported",
     [](SmallProblem& p) {
       p.op.kv.value = p.pool.zeros(DType::kF32, {5, 4, 2, 8});
     }},
};

class FeatureOf : public testing::TestWithParam<FeatureUse> {
 protected:
  FeatureOf() { GetParam().use(p_); }
  SmallProblem p_;
};

TEST_P(FeatureOf, IsTheOneReasonWhenOnlyItIsMissing) {
  Capabilities c = all_capabilities();
  c.features = ~bit(GetParam().feature);
  EXPECT_EQ(unsupported_reasons(c, p_.problem()), Reasons{GetParam().reason});
}

TEST_P(FeatureOf, IsAllThatItsUseNeeds) {
  Capabilities c = all_capabilities();
  c.features = bit(GetParam().feature);
  EXPECT_EQ(unsupported_reasons(c, p_.problem()), Reasons{});
}

INSTANTIATE_TEST_SUITE_P(Features, FeatureOf, testing::ValuesIn(kFeatureUses),
                         [](const auto& use) { return use.param.name; });

TEST(UnsupportedReasons, PlainCausalAttentionNeedsNoFeature) {
  Capabilities c = all_capabilities();
  c.features = 0;
  EXPECT_EQ(unsupported_reasons(c, SmallProblem().problem()), Reasons{});
}

TEST(UnsupportedReasons, ScaleOfOneElementIsNoScalePerHead) {
  SmallProblem p;
  p.op.kv.k_scale = p.op.kv.v_scale = p.pool.zeros(DType::kF32, {1});
  Capabilities c = all_capabilities();
  c.features = 0;
  EXPECT_EQ(unsupported_reasons(c, p.problem()), Reasons{});
}

TEST(UnsupportedReasons, AQueryScalePerHeadNeedsTwoFeatures) {
  SmallProblem p;
  p.op.q_scale = p.pool.zeros(DType::kF32, {2});
  Capabilities c = all_capabilities();
  c.features = 0;
  EXPECT_EQ(unsupported_reasons(c, p.problem()),
            (Reasons{"query scale not supported", "per-head quant scales not supported"}));
}

TEST(UnsupportedReasons, OperationIsTheOnlyReasonWhenItIsMissing) {
  const Capabilities nothing;
  SmallProblem p;
  EXPECT_EQ(unsupported_reasons(nothing, p.problem()),
            Reasons{"operation attention not supported"});
  EXPECT_EQ(unsupported_reasons(all_capabilities(), small_merge(p.pool)),
            Reasons{"operation merge_states not supported"});
}

TEST(UnsupportedReasons, NameSizesTypesEncodingAndLayout) {
  SmallProblem p;
  p.op.query = p.pool.zeros(DType::kF16, {3, 4, 16});
  p.op.kv.key = p.pool.zeros(DType::kBF16, {5, 4, 2, 16});
  p.op.kv.value = p.pool.zeros(DType::kF8E5M2, {5, 4, 2, 8});
  Capabilities c = all_capabilities();
  c.head_size = {.min = 32};
  c.kv_layouts = {KvLayout::kVarlen};
  EXPECT_EQ(unsupported_reasons(c, p.problem()),
            (Reasons{"head_size 16 not supported", "head_size_v 8 not supported",
                     "query dtype f16 not supported", "key dtype bf16 not supported",
                     "value dtype f8_e5m2 not supported", "cache layout paged not supported"}));
}

TEST(UnsupportedReasons, EncodingReplacesStoredTypes) {
  SmallProblem p;
  p.make_per_token_head();
  Capabilities c = all_capabilities();
  EXPECT_EQ(unsupported_reasons(c, p.problem()), Reasons{});
  c.kv_encodings = {KvEncoding::kPlain};
  EXPECT_EQ(unsupported_reasons(c, p.problem()),
            Reasons{"cache encoding per-token-head not supported"});
}

TEST(UnsupportedReasons, AreCompleteAndInOrder) {
  SmallProblem p;
  p.op.mask.causal = false;
  for (const FeatureUse& use : kFeatureUses) {
    if (use.feature != Feature::kRswa && use.name != "AlibiSqrt") use.use(p);
  }
  Capabilities c = all_capabilities();
  c.features = 0;
  EXPECT_EQ(
      unsupported_reasons(c, p.problem()),
      (Reasons{"non-causal attention not supported", "causal flag per request not supported",
               "sliding window not supported", "sink tokens not supported",
               "chunked local attention not supported", "multimodal prefix ranges not supported",
               "attention mask not supported", "logits soft cap not supported",
               "ALiBi not supported", "additive bias not supported", "tree bias not supported",
               "attention sinks not supported", "query scale not supported",
               "per-head quant scales not supported", "quantised output not supported",
               "head_size_v different from head_size not supported"}));
}

TEST(HeadSizeRule, AllowsMultiplesBetweenItsEnds) {
  const HeadSizeRule rule{.min = 32, .max = 96, .multiple_of = 32};
  EXPECT_TRUE(rule.allows(32) && rule.allows(64) && rule.allows(96));
  EXPECT_FALSE(rule.allows(0) || rule.allows(16) || rule.allows(48) || rule.allows(128));
}

TEST(HeadSizeRule, MaximumZeroIsNone) { EXPECT_TRUE(HeadSizeRule{}.allows(100000)); }

const ExecSpec kEverything{.num_splits = 2,
                           .kv_chunk = 3,
                           .common_prefix_len = 4,
                           .has_common_prefix = true,
                           .dcp_size = 5,
                           .dcp_interleave = 6};

TEST(HonouredExec, IsNothingByDefault) {
  EXPECT_EQ(honoured_exec(Capabilities{}, kEverything), ExecSpec{});
}

TEST(HonouredExec, HasThePartsThatAreHonoured) {
  Capabilities c;
  c.honours_splits = true;
  EXPECT_EQ(honoured_exec(c, kEverything), (ExecSpec{.num_splits = 2, .kv_chunk = 3}));
  c = Capabilities{};
  c.honours_common_prefix = true;
  EXPECT_EQ(honoured_exec(c, kEverything),
            (ExecSpec{.common_prefix_len = 4, .has_common_prefix = true}));
  c = Capabilities{};
  c.honours_dcp = true;
  EXPECT_EQ(honoured_exec(c, kEverything), (ExecSpec{.dcp_size = 5, .dcp_interleave = 6}));
}

TEST(HonouredExec, IsAllOfItWhenAllIsHonoured) {
  Capabilities c;
  c.honours_splits = c.honours_common_prefix = c.honours_dcp = true;
  EXPECT_EQ(honoured_exec(c, kEverything), kEverything);
}

TEST(Capabilities, DataOnADeviceNeedsABackendThatReadsIt) {
  SmallProblem p;
  p.op.kv.value.space = MemorySpace::kDevice;
  Capabilities c = all_capabilities();
  EXPECT_EQ(unsupported_reasons(c, p.problem()), Reasons{"device memory not supported"});
  c.device_memory = true;
  EXPECT_EQ(unsupported_reasons(c, p.problem()), Reasons{});
}

}  // namespace
}  // namespace attn
