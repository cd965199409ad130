#include "attn/nvfp4_swizzle.h"

#include "core/checks.h"

namespace attn {

ScaleIndex swizzled(ScaleIndex at, std::int64_t block_size, std::int64_t num_groups) {
  if (block_size % 4 != 0 || num_groups % 4 != 0) {
    checks::fail("block_size {} and num_groups {} must be multiples of 4", block_size, num_groups);
  }
  if (at.slot < 0 || at.slot >= block_size || at.group < 0 || at.group >= num_groups) {
    checks::fail("({}, {}) is outside [{}, {}]", at.slot, at.group, block_size, num_groups);
  }
  const std::int64_t quarter = num_groups / 4;
  return {4 * (at.slot / 4) + at.group / quarter, 4 * (at.group % quarter) + at.slot % 4};
}

}  // namespace attn
