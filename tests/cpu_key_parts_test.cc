#include "optimized/cpu/key_parts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace attn::cpu {
namespace {

// Ends of the parts of [0, seq_len) one after another.
std::vector<std::int64_t> ends(const ExecSpec& exec, std::int64_t seq_len) {
  const KeyParts parts(exec, seq_len);
  std::vector<std::int64_t> found;
  for (std::int64_t k = 0; k < seq_len; k = parts.end_of(k)) found.push_back(parts.end_of(k));
  EXPECT_EQ(parts.count(), static_cast<std::int64_t>(found.size()));
  return found;
}

using Ends = std::vector<std::int64_t>;

TEST(CpuKeyParts, NothingAskedIsOnePart) {
  EXPECT_EQ(ends({}, 7), (Ends{7}));
  EXPECT_EQ(ends({}, 0), (Ends{}));
}

TEST(CpuKeyParts, SplitsRoundTheChunkUp) {
  EXPECT_EQ(ends({.num_splits = 3}, 7), (Ends{3, 6, 7}));
  EXPECT_EQ(ends({.num_splits = 4}, 6), (Ends{2, 4, 6}));
  EXPECT_EQ(ends({.num_splits = INT64_MAX}, 3), (Ends{1, 2, 3}));
  EXPECT_EQ(ends({.num_splits = 5}, 0), (Ends{}));
}

TEST(CpuKeyParts, ChunksAndPrefixCutTogether) {
  EXPECT_EQ(ends({.kv_chunk = 4}, 10), (Ends{4, 8, 10}));
  EXPECT_EQ(ends({.kv_chunk = INT64_MAX}, 10), (Ends{10}));
  EXPECT_EQ(ends({.common_prefix_len = 3, .has_common_prefix = true}, 10), (Ends{3, 10}));
  EXPECT_EQ(ends({.common_prefix_len = 0, .has_common_prefix = true}, 10), (Ends{10}));
  EXPECT_EQ(ends({.common_prefix_len = 10, .has_common_prefix = true}, 10), (Ends{10}));
  EXPECT_EQ(ends({.kv_chunk = 4, .common_prefix_len = 6, .has_common_prefix = true}, 10),
            (Ends{4, 6, 8, 10}));
  EXPECT_EQ(ends({.kv_chunk = 4, .common_prefix_len = 8, .has_common_prefix = true}, 10),
            (Ends{4, 8, 10}));
}

}  // namespace
}  // namespace attn::cpu
