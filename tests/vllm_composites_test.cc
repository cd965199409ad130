// vLLM's own composites, composed of described children, declare what the selector's rows declare.
#include "cli/vllm_composites.h"

#include <gtest/gtest.h>

#include "attn/composite.h"
#include "attn/selector.h"
#include "attn/vllm_error.h"

namespace attn::cli {
namespace {

std::vector<SelectorFacts> all_facts() {
  std::vector<SelectorFacts> all;
  for (const DeviceCapability capability :
       {DeviceCapability{7, 5}, {8, 0}, {9, 0}, {10, 0}, {10, 3}, {12, 0}}) {
    for (int bits = 0; bits < 16; ++bits) {
      SelectorFacts facts;
      facts.capability = capability;
      facts.environment.fa3_built = (bits & 1) != 0;
      facts.environment.fa4_built = (bits & 2) != 0;
      facts.environment.nvidia_artifactory = (bits & 4) != 0;
      if ((bits & 8) != 0) facts.environment.model = ModelFacts{};
      all.push_back(facts);
    }
  }
  return all;
}

TEST(VllmComposites, DeclareWhatTheSelectorsRowsDeclare) {
  for (const SelectorFacts& facts : all_facts()) {
    const BackendSelector selector(facts, BackendRegistry(RegistryKind::kAttention));
    for (const char* name : {"TRITON_FLASHINFER", "TRITON_FLASH_ATTN"}) {
      const DescribedBackend row = selector.check(name).backend();
      const AttentionBackendPtr composite = vllm_composite(name, facts);
      const DescribedBackend ours = composite->describe(facts.capability);
      EXPECT_EQ(composite->name(), row.name);
      EXPECT_EQ(to_string(composite->full_class_name()), selector.registry().path(name));
      EXPECT_EQ(children_of(*composite).size(), 2U);
      for (int size = 1; size < 700; ++size) {
        EXPECT_EQ(ours.heads.allow(size), row.heads.allow(size));
        EXPECT_EQ(ours.blocks.support(size), row.blocks.support(size));
      }
      EXPECT_EQ(ours.heads.declared, row.heads.declared);
      EXPECT_EQ(ours.dtypes, row.dtypes);
      EXPECT_EQ(ours.kv.accepted, row.kv.accepted);
      EXPECT_EQ(ours.blocks.sizes, row.blocks.sizes);
      EXPECT_EQ(ours.capability, row.capability);
      EXPECT_EQ(ours.mm_prefix, row.mm_prefix);
      EXPECT_EQ(ours.sliding_window, row.sliding_window);
      EXPECT_EQ(ours.rswa, row.rswa);
      EXPECT_EQ(ours.layouts, row.layouts);
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
