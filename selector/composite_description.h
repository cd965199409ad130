// What a composite of two backends says about itself in selection.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn/described_backend.h"

namespace attn {

struct CompositeDescription {
  std::string name;
  std::optional<std::vector<int>> head_sizes;
  std::vector<int> kernel_block_sizes;  // empty = what the children have in common
  bool on_its_device = true;            // the capability has the major that it asks for
};

// The mm-prefix policy: the general child answers batches with image ranges, and only it sees
// use_mm_prefix. Throws VllmError when a child writes the KV cache in its forward, or when the
// children have no layout in common.
DescribedBackend describe_composite(const CompositeDescription& asked,
                                    const DescribedBackend& general,
                                    const DescribedBackend& causal);

}  // namespace attn
