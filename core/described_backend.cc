#include "attn/described_backend.h"

#include <algorithm>

namespace attn {

bool HeadSizes::allow(int head_size) const {
  if (head_size < min || head_size > max || head_size % multiple_of != 0) return false;
  return only.empty() || std::find(only.begin(), only.end(), head_size) != only.end();
}

bool KernelBlocks::support(std::optional<int> block_size) const {
  if (sizes.empty() && empty_refuses) return false;
  if (exact && block_size) {
    return std::find(sizes.begin(), sizes.end(), BlockSize{*block_size, false}) != sizes.end();
  }
  return supports_block_size(sizes, block_size);
}

int KernelBlocks::preferred(int block_size) const {
  if (always_preferred) return *always_preferred;
  if (preferred_at_least) return std::max(block_size, *preferred_at_least);
  if (preferred_fallback) return support(block_size) ? block_size : *preferred_fallback;
  return preferred_block_size(sizes, block_size);
}

}  // namespace attn
