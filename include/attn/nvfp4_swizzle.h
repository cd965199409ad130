// Where vLLM's kernels keep the scales of an NVFP4 page.
#pragma once

#include <cstdint>

namespace attn {

// Indices into [block_size, head_size / 16] scales of one KV head.
struct ScaleIndex {
  std::int64_t slot = 0;
  std::int64_t group = 0;

  bool operator==(const ScaleIndex&) const = default;
};

// Where the scale of (slot, group) lies in a page with swizzled scales (vLLM's
// triton_reshape_and_cache_flash): with G groups a token and g = G / 4,
//
//   (4 * floor(slot / 4) + floor(group / g), 4 * (group mod g) + slot mod 4)
//
// block_size and num_groups must be multiples of 4 (head sizes, of 64), else Error, as for an index
// outside. Caches of the operation `attention` have their scales in plain order: a reader of a page
// from vLLM moves them first. Contested: trtllm-gen's kernels expect a layout of their own.
ScaleIndex swizzled(ScaleIndex at, std::int64_t block_size, std::int64_t num_groups);

}  // namespace attn
