// AttentionSelectorConfig and the names around it.
#include "attn/selector_config.h"

#include <gtest/gtest.h>

#include "attn/cache_dtype.h"
#include "attn/error.h"
#include "attn/selector_environment.h"

namespace attn {
namespace {

TEST(SelectorConfig, ReprIsPythons) {
  const AttentionSelectorConfig config = {.head_size = 128,
                                          .dtype = DType::kBF16,
                                          .kv_cache_dtype = CacheDType::kAuto,
                                          .use_pcp = true};
  EXPECT_EQ(to_string(config),
            "AttentionSelectorConfig(head_size=128, dtype=torch.bfloat16, kv_cache_dtype=auto, "
            "block_size=None, use_mla=False, has_sink=False, use_sparse=False, "
            "use_mm_prefix=False, use_per_head_quant_scales=False, "
            "attn_type=AttentionType.DECODER, has_sliding_window=False, use_non_causal=False, "
            "use_batch_invariant=False, use_kv_connector=False, use_adaptive_verification=False, "
            "use_pcp=True, use_dcp=False, use_rswa=False)");
}

TEST(SelectorConfig, ReprParsesBack) {
  AttentionSelectorConfig config = {.head_size = -8,
                                    .dtype = DType::kF32,
                                    .kv_cache_dtype = CacheDType::kOctaveK3V3Compact,
                                    .block_size = 64,
                                    .has_sink = true,
                                    .attn_type = {AttentionType::kEncoderDecoder, true},
                                    .use_adaptive_verification = true,
                                    .use_rswa = true};
  const std::string text = to_string(config);
  EXPECT_EQ(selector_config_from_repr(text), config);
  EXPECT_EQ(to_string(selector_config_from_repr(text)), text);
}

TEST(SelectorConfig, RefusesABrokenRepr) {
  const std::string text = to_string(AttentionSelectorConfig{});
  for (const std::string& bad :
       {std::string(), text.substr(0, text.size() - 1), text + ")", text + ", x=1", "A" + text,
        text.substr(0, text.size() - 7) + "Maybe)"}) {
    EXPECT_THROW(selector_config_from_repr(bad), Error) << bad;
  }
}

TEST(SelectorConfig, PlainTypeEqualsTheMember) {
  AttentionSelectorConfig member;
  AttentionSelectorConfig plain;
  plain.attn_type.plain = true;
  EXPECT_EQ(member, plain);
  EXPECT_NE(to_string(member), to_string(plain));
}

TEST(CacheDType, IsQuantisedExactlyWhereItsNameHasAMode) {
  for (int index = 0; index < kNumCacheDTypes; ++index) {
    const auto dtype = static_cast<CacheDType>(index);
    EXPECT_EQ(is_quantised(dtype), kv_quant_mode(name(dtype)) != KvQuantMode::kNone) << name(dtype);
    EXPECT_EQ(is_nvfp4_family(dtype), name(dtype).starts_with("nvfp4")) << name(dtype);
    EXPECT_EQ(is_turboquant(dtype), name(dtype).starts_with("turboquant_")) << name(dtype);
    EXPECT_EQ(cache_dtype_from_name(name(dtype)), dtype);
  }
}

TEST(CacheDTypeSet, HoldsNotGivenApart) {
  const CacheDTypeSet set = {CacheDType::kFp8};
  EXPECT_FALSE(set.contains(std::nullopt));
  EXPECT_TRUE(set.with(std::nullopt).contains(std::nullopt));
  EXPECT_EQ(set.with(std::nullopt).without(std::nullopt), set);
}

TEST(DeviceCapability, IsOrderedAsAPair) {
  EXPECT_LT((DeviceCapability{8, 9}), (DeviceCapability{9, 0}));
  EXPECT_LT((DeviceCapability{9, 9}), (DeviceCapability{10, 0}));
  EXPECT_LT((DeviceCapability{12, 0}), (DeviceCapability{12, 1}));
}

TEST(DeviceCapability, FollowsFromGcnArch) {
  EXPECT_EQ(capability_of_gcn_arch("gfx90a"), (DeviceCapability{9, 0}));
  EXPECT_EQ(capability_of_gcn_arch("gfx942"), (DeviceCapability{9, 4}));
  EXPECT_EQ(capability_of_gcn_arch("gfx1151"), (DeviceCapability{11, 5}));
  EXPECT_EQ(capability_of_gcn_arch("gfx1250"), (DeviceCapability{12, 5}));
  for (const char* bad : {"", "gfx", "gfx9", "942", "gfx12345"}) {
    EXPECT_THROW(capability_of_gcn_arch(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace attn
