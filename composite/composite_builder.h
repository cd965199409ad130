// The builder of a composite, and its metadata.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "attn/composite.h"

namespace attn {

class CompositeAttentionBackend;

// A child's metadata with the route that led to it.
class CompositeMetadata final : public AttentionMetadata {
 public:
  CompositeMetadata(AttentionBackendPtr backend, Route route, MetadataPtr inner);

  const AttentionBackend& backend() const override { return *backend_; }
  const AttentionMetadata* inner() const override { return inner_.get(); }
  const Route& route() const { return route_; }

 private:
  AttentionBackendPtr backend_;
  Route route_;
  MetadataPtr inner_;
};

// Batches go to the builder of the child that the policy selects; captures to that of the policy's
// capture child. No metadata of a composite is updated in place: it is built again for every cache
// group.
class CompositeAttentionBuilder final : public AttentionMetadataBuilder {
 public:
  CompositeAttentionBuilder(std::shared_ptr<const CompositeAttentionBackend> backend,
                            const BuilderArguments& arguments);

  const AttentionBackend& backend() const override;
  MetadataPtr build(int common_prefix_len, const CommonAttentionMetadata& batch,
                    bool fast_build) override;
  MetadataPtr build_for_cudagraph_capture(const CommonAttentionMetadata& batch) override;
  std::optional<int> reorder_batch_threshold() const override;
  void set_kernel_block_size(int block_size) override;
  bool provides_workspace() const override;
  WorkspacePtr workspace() override;
  bool takes_workspace() const override;
  void set_workspace(WorkspacePtr buffer) override;

 private:
  MetadataPtr tagged(Route route, std::size_t child, MetadataPtr inner) const;

  std::shared_ptr<const CompositeAttentionBackend> backend_;
  std::vector<std::unique_ptr<AttentionMetadataBuilder>> builders_;  // of the children
  std::unique_ptr<RoutingPolicy> policy_;
  int capture_child_;
};

}  // namespace attn
