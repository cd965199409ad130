// The composite behind attn/composite.h, and how it differs when it has to answer as vLLM does.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attn/composite.h"

namespace attn {

// kVllm answers tables, for two children:
//   one child twice           the child itself, instead of an error
//   a select but 0            child 1, instead of an error outside 0..1
//   a capture child           an index as Python takes it: -1 is the last
//   a child that builds none  AttributeError, instead of an error
//   metadata                  one tag for all nested composites, of the outermost; without: child 0
enum class Conduct { kStrict, kVllm };

// Kept alive by its builders, implementations and metadata.
class CompositeAttentionBackend final
    : public AttentionBackend,
      public std::enable_shared_from_this<CompositeAttentionBackend> {
 public:
  CompositeAttentionBackend(std::vector<AttentionBackendPtr> children, RoutingPolicyPtr policy,
                            CompositeOptions options, Conduct conduct);

  std::string name() const override { return options_.backend_name; }
  ClassName full_class_name() const override { return {options_.module, options_.class_name}; }
  DescribedBackend describe(const std::optional<DeviceCapability>& capability) const override;
  BlockSizes kernel_block_sizes(const KvCacheSpec& spec) const override;
  KvCacheSpec customize_spec(const KvCacheSpec& spec) const override;
  GraphSupport cudagraph_support(const BuilderArguments& arguments) const override;
  bool requires_block_table_width() const override;
  std::vector<std::string> reasons_against(const CommonAttentionMetadata& batch,
                                           const BuilderArguments& group) const override;
  std::unique_ptr<AttentionMetadataBuilder> make_builder(
      const BuilderArguments& arguments) const override;
  std::unique_ptr<AttentionImpl> make_impl(const ImplArguments& arguments) const override;

  const std::vector<AttentionBackendPtr>& children() const { return children_; }
  const RoutingPolicyPtr& policy() const { return policy_; }
  const CompositeOptions& options() const { return options_; }
  Conduct conduct() const { return conduct_; }

  // Index of a child that the policy names; throws where that names none.
  std::size_t selected_child(int child) const;
  std::size_t captured_child(int child) const;

 private:
  std::vector<AttentionBackendPtr> children_;
  RoutingPolicyPtr policy_;
  CompositeOptions options_;
  Conduct conduct_;
};

// As compose() of attn/composite.h, in one of two ways.
AttentionBackendPtr compose_as(Conduct conduct, std::vector<AttentionBackendPtr> children,
                               RoutingPolicyPtr policy, CompositeOptions options);

}  // namespace attn
