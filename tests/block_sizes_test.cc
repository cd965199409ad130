// Kernel block sizes and layouts of several backends together.
#include "attn/block_sizes.h"

#include <gtest/gtest.h>

#include "attn/cache_layouts.h"
#include "attn/error.h"
#include "attn/vllm_error.h"

namespace attn {
namespace {

TEST(BlockSizes, ValidationIsLooserThanTheCommonSize) {
  const BlockSizes sixteen = {{16}};
  EXPECT_TRUE(supports_block_size(sixteen, 48));
  EXPECT_EQ(select_common_block_size(48, std::vector<NamedBlockSizes>{{"A", sixteen}}), 16);
}

TEST(BlockSizes, IntersectionKeepsTheFirstOfEqualEntries) {
  const BlockSizes outer = {multiple_of(16), {64}};
  const BlockSizes inner = {{64}, multiple_of(24)};
  EXPECT_EQ(intersect_block_sizes(outer, inner), (BlockSizes{{64}, multiple_of(48)}));
}

TEST(BlockSizes, HugeCommonMultipleIsRefused) {
  const BlockSizes a = {multiple_of(2147483647)};
  const BlockSizes b = {multiple_of(2147483646)};
  EXPECT_THROW(intersect_block_sizes(a, b), Error);
}

TEST(BlockSizes, NoCommonSizeSaysWho) {
  const std::vector<NamedBlockSizes> backends = {{"A", {{128}}}, {"B", {multiple_of(32), {8}}}};
  try {
    select_common_block_size(24, backends);
    FAIL();
  } catch (const VllmError& error) {
    EXPECT_EQ(error.type(), "ValueError");
    EXPECT_STREQ(error.what(), "No common block size for 24 (A: [128]; B: [MultipleOf(32), 8]).");
  }
}

TEST(CacheLayouts, VotesOrderWhatIsCommon) {
  using enum CacheLayout;
  const std::vector<std::optional<CacheLayouts>> declared = {
      CacheLayouts{kLBNHC, kLBHNC}, std::nullopt, CacheLayouts{kLBHNC, kLBNHC, kBLHNC},
      CacheLayouts{kLBNHC, kBLHNC, kLBHNC}};
  EXPECT_EQ(common_cache_layouts(declared), (CacheLayouts{kLBNHC, kLBHNC}));
}

}  // namespace
}  // namespace attn
