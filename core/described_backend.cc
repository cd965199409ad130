#include "attn/described_backend.h"

#include <algorithm>
#include <array>

#include "attn/vllm_error.h"
#include "core/contains.h"

namespace attn {
namespace {

int smallest(const BlockSizes& sizes) {
  const auto less = [](BlockSize a, BlockSize b) { return a.size < b.size; };
  return std::min_element(sizes.begin(), sizes.end(), less)->size;
}

constexpr std::array<std::string_view, 4> kGraphNames = {"NEVER", "UNIFORM_SINGLE_TOKEN_DECODE",
                                                         "UNIFORM_BATCH", "ALWAYS"};

}  // namespace

std::string_view name(GraphSupport support) {
  return kGraphNames[static_cast<std::size_t>(support)];
}

std::optional<GraphSupport> graph_support_from_name(std::string_view name) {
  const auto* const found = std::find(kGraphNames.begin(), kGraphNames.end(), name);
  if (found == kGraphNames.end()) return std::nullopt;
  return static_cast<GraphSupport>(found - kGraphNames.begin());
}

bool HeadSizes::allow(int head_size) const {
  if (head_size < min || head_size > max || head_size % multiple_of != 0) return false;
  return only.empty() || contains(only, head_size);
}

bool KernelBlocks::support(std::optional<int> block_size) const {
  if (sizes.empty() && empty_refuses) return false;
  if (multiples_only) return !block_size || *block_size % *multiples_only == 0;
  if (exact && block_size) {
    return contains(sizes, BlockSize{*block_size, false});
  }
  return supports_block_size(sizes, block_size);
}

int KernelBlocks::preferred(int block_size) const {
  if (always_preferred) return *always_preferred;
  if (preferred_at_least) return std::max(block_size, *preferred_at_least);
  if (preferred_fallback) return support(block_size) ? block_size : *preferred_fallback;
  if (multiples_only && support(block_size)) return block_size;
  if (multiples_only && !sizes.empty()) return smallest(sizes);
  return preferred_block_size(sizes, block_size);
}

const std::optional<CacheLayouts>& supported_layouts(const DescribedBackend& backend) {
  if (!backend.layouts_raise.empty()) throw VllmError("ValueError", backend.layouts_raise);
  return backend.layouts;
}

}  // namespace attn
