// A backend inside an engine, after vLLM's AttentionBackend: what it declares, and the makers of
// its builder and its implementation. Names are vLLM's; defaults are those of its base class.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attn/attention_impl.h"
#include "attn/described_backend.h"
#include "attn/metadata_builder.h"

namespace attn {

struct ClassName {
  std::string module;
  std::string name;

  bool operator==(const ClassName&) const = default;
};
std::string to_string(const ClassName& name);  // "module.name"

// Immutable; thread-safe. Lives in a shared_ptr; whoever holds its builders, implementations or
// metadata keeps it alive.
class AttentionBackend {
 public:
  virtual ~AttentionBackend() = default;

  virtual std::string name() const = 0;           // get_name()
  virtual ClassName full_class_name() const = 0;  // full_cls_name(), identity

  // On a device with this capability; none = a device without one. Everything that selection reads.
  virtual DescribedBackend describe(const std::optional<DeviceCapability>& capability) const = 0;
  // get_supported_kernel_block_sizes(spec); without a spec it is what describe() says.
  virtual BlockSizes kernel_block_sizes(const KvCacheSpec& spec) const = 0;
  virtual KvCacheSpec customize_spec(const KvCacheSpec& spec) const { return spec; }

  virtual GraphSupport cudagraph_support(const BuilderArguments& arguments) const = 0;
  virtual std::optional<int> varlen_cudagraph_max_query_len(const BuilderArguments&) const {
    return std::nullopt;
  }
  virtual bool requires_block_table_width() const { return false; }

  // Why the implementation cannot answer this batch of a group; empty = it can.
  virtual std::vector<std::string> reasons_against(const CommonAttentionMetadata& /*batch*/,
                                                   const BuilderArguments& /*group*/) const {
    return {};
  }

  virtual std::unique_ptr<AttentionMetadataBuilder> make_builder(
      const BuilderArguments& arguments) const = 0;
  // Throws VllmError TypeError for arguments that it does not know, ValueError for their values.
  virtual std::unique_ptr<AttentionImpl> make_impl(const ImplArguments& arguments) const = 0;
};
using AttentionBackendPtr = std::shared_ptr<const AttentionBackend>;

// "metadata was built by X, not by Y": for implementations of forward and of the update functions.
// Throws Error unless `metadata` was built by `backend`.
void expect_built_by(const AttentionMetadata& metadata, const AttentionBackend& backend);

}  // namespace attn
