// vLLM's own composites, composed of described children.
#include "cli/vllm_composites.h"

#include <gtest/gtest.h>

#include "attn/composite.h"
#include "attn/vllm_error.h"

namespace attn::cli {
namespace {

struct Expected {
  const char* name;
  const char* full_class_name;
  const char* causal_class_name;
  std::vector<int> block_sizes;  // {}: those of the children
  int only_major;                // 0: those of the children
};

// Of vLLM 0.33.0's triton_flash_attn.py and triton_flashinfer.py.
const Expected kExpected[] = {
    {"TRITON_FLASH_ATTN",
     "vllm.v1.attention.backends.triton_flash_attn.TritonFlashAttentionBackend",
     "vllm.v1.attention.backends.triton_flash_attn.CausalFlashAttentionBackend",
     {},
     0},
    {"TRITON_FLASHINFER",
     "vllm.v1.attention.backends.triton_flashinfer.TritonFlashInferBackend",
     "vllm.v1.attention.backends.flashinfer.FlashInferBackend",
     {64},
     10}};

TEST(VllmComposites, AreOfTritonAndACausalBackend) {
  for (const Expected& expected : kExpected) {
    for (const DeviceCapability device : {DeviceCapability{8, 0}, {9, 0}, {10, 3}, {12, 0}}) {
      const AttentionBackendPtr composite = vllm_composite(expected.name, {.capability = device});
      EXPECT_EQ(composite->name(), expected.name);
      EXPECT_EQ(to_string(composite->full_class_name()), expected.full_class_name);
      const auto children = children_of(*composite);
      ASSERT_EQ(children.size(), 2U);
      EXPECT_EQ(to_string(children[0]->full_class_name()),
                "vllm.v1.attention.backends.triton_attn.TritonAttentionBackend");
      EXPECT_EQ(to_string(children[1]->full_class_name()), expected.causal_class_name);
      const DescribedBackend described = composite->describe(device);
      EXPECT_EQ(described.heads.declared, (std::vector{256, 512}));
      if (!expected.block_sizes.empty()) {
        EXPECT_EQ(described.blocks.sizes, (BlockSizes{{expected.block_sizes[0], false}}));
      }
      if (expected.only_major != 0) {
        EXPECT_EQ(described.capability, device.major == expected.only_major);
      }
      EXPECT_TRUE(described.mm_prefix) << "the general child sees images, the causal one none";
    }
  }
}

TEST(VllmComposites, AreOnlyDescribed) {
  const AttentionBackendPtr composite = vllm_composite("TRITON_FLASH_ATTN", {});
  EXPECT_THROW(composite->make_builder({}), VllmError);
  EXPECT_THROW(composite->make_impl({}), VllmError);
  EXPECT_EQ(vllm_composite("FLASH_ATTN", {}), nullptr);
  EXPECT_FALSE(vllm_backend_of_table("FLASH_ATTN", {9, 0}, 3));
}

}  // namespace
}  // namespace attn::cli
