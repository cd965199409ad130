// Selection: order of reasons, completeness, errors; by hand from the specification.
#include "attn/selector.h"

#include <gtest/gtest.h>

#include "attn/backend_check.h"
#include "attn/error.h"
#include "selector/vllm_backends.h"

namespace attn {
namespace {

SelectorFacts cuda(int major, int minor) {
  return {.platform = Platform::kCuda, .capability = DeviceCapability{major, minor}};
}

std::vector<std::string> reasons_of(const char* backend, const SelectorFacts& facts,
                                    const AttentionSelectorConfig& config) {
  const BackendCheck check(find_backend_row(backend)->describe(facts));
  return reason_texts(check.validate(Requirements(config), facts), check, facts, config);
}

TEST(ValidateConfiguration, GivesEveryReasonInOrder) {
  const AttentionSelectorConfig everything = {.head_size = 100,
                                              .dtype = DType::kF32,
                                              .kv_cache_dtype = CacheDType::kNvfp4,
                                              .block_size = 24,
                                              .use_mla = false,
                                              .has_sink = true,
                                              .use_sparse = true,
                                              .use_mm_prefix = true,
                                              .use_per_head_quant_scales = true,
                                              .attn_type = {AttentionType::kEncoderOnly},
                                              .has_sliding_window = true,
                                              .use_non_causal = true,
                                              .use_batch_invariant = true,
                                              .use_kv_connector = true,
                                              .use_pcp = true,
                                              .use_adaptive_verification = true,
                                              .use_dcp = true,
                                              .use_rswa = true};
  EXPECT_EQ(reasons_of("CUTLASS_MLA", cuda(9, 0), everything),
            (std::vector<std::string>{
                "head_size not supported", "dtype not supported", "kv_cache_dtype not supported",
                "block_size not supported", "partial multimodal token full attention not supported",
                "non-MLA not supported", "attention sinks not supported", "sparse not supported",
                "per-head quant scales not supported", "compute capability not supported",
                "attention type AttentionType.ENCODER_ONLY not supported",
                "sliding window not supported", "R-SWA not supported",
                "non-causal attention not supported", "batch invariance not supported"}));
}

TEST(ValidateConfiguration, CompositeNamesTheChildThatRefuses) {
  SelectorFacts facts = cuda(9, 0);
  facts.environment.fa3_built = facts.environment.fa4_built = false;
  const AttentionSelectorConfig config = {.head_size = 256};
  EXPECT_EQ(
      reasons_of("TRITON_FLASH_ATTN", facts, config),
      (std::vector<std::string>{"FLASH_ATTN: causal route requires FlashAttention v3 or v4"}));
}

TEST(ValidateConfiguration, TextsOfReasonsMayRepeat) {
  const AttentionSelectorConfig config = {
      .head_size = 576, .dtype = DType::kF16, .use_mla = true, .use_sparse = true};
  EXPECT_EQ(reasons_of("FLASHINFER_MLA_SPARSE_SM120", cuda(12, 0), config),
            (std::vector<std::string>{"dtype not supported", "dtype not supported"}));
}

TEST(ValidateConfiguration, HpcAttentionIsForHopperOnly) {
  const AttentionSelectorConfig config = {
      .head_size = 128, .kv_cache_dtype = CacheDType::kAuto, .block_size = 64};
  EXPECT_EQ(reasons_of("HPC_ATTN", cuda(9, 0), config), std::vector<std::string>{});
  for (const auto& [major, minor] :
       {std::pair(8, 0), std::pair(8, 9), std::pair(9, 1), std::pair(10, 0), std::pair(12, 0)}) {
    EXPECT_EQ(reasons_of("HPC_ATTN", cuda(major, minor), config),
              std::vector<std::string>{"compute capability not supported"})
        << major << "." << minor;
  }
}

TEST(BackendCheck, LooksUpWhatTheRulesSay) {
  const SelectorFacts facts = cuda(9, 0);
  for (const char* name : {"FLASH_ATTN", "TRITON_ATTN", "FLASHINFER", "B12X", "FLASHMLA"}) {
    const BackendCheck check(find_backend_row(name)->describe(facts));
    for (int size = -17; size < 2100; ++size) {
      const AttentionSelectorConfig config = {.head_size = size, .block_size = size};
      const Reasons reasons = check.validate(Requirements(config), facts);
      ASSERT_EQ(reasons.has(Reason::kHeadSize), !check.backend().heads.allow(size)) << name << size;
      ASSERT_EQ(reasons.has(Reason::kBlockSize), !check.backend().blocks.support(size))
          << name << size;
    }
    const Reasons not_given = check.validate(Requirements({.head_size = 64}), facts);
    EXPECT_EQ(not_given.has(Reason::kBlockSize), !check.backend().blocks.support({})) << name;
  }
}

TEST(Requirements, NonCausalMlaWithDcpIsOneWish) {
  AttentionSelectorConfig config = {.use_mla = true, .use_non_causal = true};
  const std::uint32_t bit = Reasons::bit(Reason::kNonCausalDcp);
  EXPECT_EQ(Requirements(config).wanted & bit, 0U);
  config.use_dcp = true;
  EXPECT_EQ(Requirements(config).wanted & bit, bit);
  config.use_mla = false;
  EXPECT_EQ(Requirements(config).wanted & bit, 0U);
}

TEST(BackendSelector, ChoosesTheFirstValidCandidate) {
  const BackendSelector selector(cuda(9, 0), BackendRegistry(RegistryKind::kAttention));
  SelectionRequest request;
  request.config = {.head_size = 256, .use_mm_prefix = true};
  request.num_heads = 32;
  const Selection selection = selector.select(request);
  EXPECT_EQ(selection.backend, "TRITON_FLASH_ATTN");
  ASSERT_EQ(selection.candidates.size(), 6U);
  EXPECT_EQ(selection.candidates[2].name, "FLASHINFER");
  EXPECT_EQ(selection.candidates[2].reasons,
            std::vector<std::string>{"partial multimodal token full attention not supported"});
}

TEST(BackendSelector, ARequestIsNotReplaced) {
  const BackendSelector selector(cuda(8, 0), BackendRegistry(RegistryKind::kAttention));
  SelectionRequest request;
  request.backend = "FLASHMLA";
  request.config = {.head_size = 576, .use_mla = true};
  const Selection selection = selector.select(request);
  ASSERT_TRUE(selection.error.has_value());
  EXPECT_EQ(selection.error->type(), "ValueError");
  EXPECT_STREQ(
      selection.error->what(),
      "Selected backend AttentionBackendEnum.FLASHMLA is not valid for this "
      "configuration. Reason: ['compute capability not supported', 'FlashMLA Dense is only "
      "supported on Hopper devices.']");
}

TEST(BackendSelector, RefusesBadInput) {
  const BackendRegistry registry(RegistryKind::kAttention);
  EXPECT_THROW(BackendSelector({.platform = Platform::kCuda}, registry), Error);
  EXPECT_THROW(
      BackendSelector({.platform = Platform::kCpu, .capability = DeviceCapability{9, 0}}, registry),
      Error);
  EXPECT_THROW(BackendSelector({.platform = Platform::kRocm, .capability = DeviceCapability{9, 0}},
                               registry),
               Error);  // gfx942 is 9.4
  SelectionRequest request;
  request.backend = "NOPE";
  EXPECT_THROW(BackendSelector(cuda(9, 0), registry).select(request), Error);
}

}  // namespace
}  // namespace attn
