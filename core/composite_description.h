// What a composite says about itself in selection, of what its children say.
#pragma once

#include <optional>
#include <span>

#include "attn/composite.h"
#include "attn/described_backend.h"

namespace attn {

struct DescribedChild {
  DescribedBackend backend;
  bool sees_mm_prefix = true;  // its policy may send it image ranges
};

// `children`, in the composite's order, are described for `capability`. Throws VllmError when a
// child writes the KV cache in its forward; children without a layout in common are described,
// asking for the layouts then raises.
DescribedBackend describe_composite(const CompositeOptions& options,
                                    const std::optional<DeviceCapability>& capability,
                                    std::span<const DescribedChild> children);

// The sizes of `wanted` that all lists support, or their intersection when `wanted` is empty.
BlockSizes composite_block_sizes(std::span<const KernelBlocks> children,
                                 std::span<const int> wanted);

}  // namespace attn
