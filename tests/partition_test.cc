#include "reference/partition.h"

#include <gtest/gtest.h>

#include <vector>

namespace attn::reference {
namespace {

using Parts = std::vector<int>;

TEST(Partition, NothingAskedIsOnePart) { EXPECT_EQ(partition_keys({}, 4), (Parts{0, 0, 0, 0})); }

TEST(Partition, NoKeysHaveNoPart) { EXPECT_EQ(partition_keys({.num_splits = 3}, 0), Parts{}); }

TEST(Partition, SplitsAreChunksOfTheRoundedUpShare) {
  EXPECT_EQ(partition_keys({.num_splits = 2}, 5), (Parts{0, 0, 0, 1, 1}));
  EXPECT_EQ(partition_keys({.num_splits = 2}, 6), (Parts{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(partition_keys({.num_splits = 4}, 5), (Parts{0, 0, 1, 1, 2}));  // the fourth is empty
  EXPECT_EQ(partition_keys({.num_splits = 9}, 3), (Parts{0, 1, 2}));
}

TEST(Partition, ChunksHaveTheirSize) {
  EXPECT_EQ(partition_keys({.kv_chunk = 2}, 5), (Parts{0, 0, 1, 1, 2}));
  EXPECT_EQ(partition_keys({.kv_chunk = 100}, 3), (Parts{0, 0, 0}));
}

TEST(Partition, CommonPrefixIsApart) {
  const ExecSpec exec{.common_prefix_len = 2, .has_common_prefix = true};
  EXPECT_EQ(partition_keys(exec, 5), (Parts{0, 0, 1, 1, 1}));
}

TEST(Partition, CommonPrefixMayBeNothingOrEverything) {
  EXPECT_EQ(partition_keys({.has_common_prefix = true}, 3), (Parts{0, 0, 0}));
  EXPECT_EQ(partition_keys({.common_prefix_len = 9, .has_common_prefix = true}, 3),
            (Parts{0, 0, 0}));
}

TEST(Partition, CommonPrefixNeedsItsFlag) {
  EXPECT_EQ(partition_keys({.common_prefix_len = 2}, 3), (Parts{0, 0, 0}));
}

TEST(Partition, RanksTakeTurnsKeyByKey) {
  EXPECT_EQ(partition_keys({.dcp_size = 3}, 7), (Parts{0, 1, 2, 0, 1, 2, 0}));
}

TEST(Partition, RanksTakeTurnsInInterleavedRuns) {
  EXPECT_EQ(partition_keys({.dcp_size = 2, .dcp_interleave = 3}, 10),
            (Parts{0, 0, 0, 1, 1, 1, 0, 0, 0, 1}));
}

// Numbered by the smallest key of each part.
TEST(Partition, AllTogetherIsTheCommonRefinement) {
  const ExecSpec exec{
      .kv_chunk = 4, .common_prefix_len = 3, .has_common_prefix = true, .dcp_size = 2};
  EXPECT_EQ(partition_keys(exec, 8), (Parts{0, 1, 0, 2, 3, 4, 3, 4}));
}

}  // namespace
}  // namespace attn::reference
