// What a composite says about itself in selection, of what its children say.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "attn/described_backend.h"

namespace attn {

struct CompositeDescription {
  std::string name;
  std::vector<int> head_sizes;          // empty = what the children have in common
  std::vector<int> kernel_block_sizes;  // empty = what the children have in common
  bool on_its_device = true;            // the capability has the major that it asks for
  // KV connectors and attention types are those of all children, not those of the base class.
  bool connector_and_types_of_children = false;
};

struct DescribedChild {
  DescribedBackend backend;
  bool sees_mm_prefix = true;  // its policy may send it image ranges
};

// In the order of the composite's children. Throws VllmError when a child writes the KV cache in
// its forward; children without a layout in common are described, asking for the layouts then
// raises.
DescribedBackend describe_composite(const CompositeDescription& asked,
                                    std::span<const DescribedChild> children);

// The sizes of `wanted` that all lists support, or their intersection when `wanted` is empty.
BlockSizes composite_block_sizes(std::span<const KernelBlocks> children,
                                 std::span<const int> wanted);

}  // namespace attn
