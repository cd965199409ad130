#include "composite/composite_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "attn/builder_group.h"
#include "attn/error.h"
#include "attn/vllm_error.h"
#include "composite/composite_attention_backend.h"

namespace attn {

CompositeMetadata::CompositeMetadata(AttentionBackendPtr backend, Route route, MetadataPtr inner)
    : backend_(std::move(backend)), route_(std::move(route)), inner_(std::move(inner)) {}

CompositeAttentionBuilder::CompositeAttentionBuilder(
    std::shared_ptr<const CompositeAttentionBackend> backend, const BuilderArguments& arguments)
    : backend_(std::move(backend)) {
  builders_.reserve(backend_->children().size());
  for (const AttentionBackendPtr& child : backend_->children()) {
    BuilderArguments own = arguments;
    if (!child->requires_block_table_width()) own.block_table_width.reset();
    builders_.push_back(child->make_builder(own));
  }
  policy_ = backend_->policy()->make(arguments, backend_->children());
  capture_child_ = backend_->policy()->capture_child(arguments);
  if (backend_->conduct() == Conduct::kStrict) backend_->captured_child(capture_child_);
}

const AttentionBackend& CompositeAttentionBuilder::backend() const { return *backend_; }

MetadataPtr CompositeAttentionBuilder::tagged(Route route, std::size_t child,
                                              MetadataPtr inner) const {
  if (inner) {
    expect_built_by(*inner, *backend_->children()[child]);
    return std::make_shared<CompositeMetadata>(backend_, std::move(route), std::move(inner));
  }
  if (backend_->conduct() == Conduct::kVllm) {
    throw VllmError("AttributeError",
                    "'NoneType' object has no attribute '_attention_backend_variant'");
  }
  throw Error(fmt::format("child {} of {}, {}, built no metadata", child, backend_->name(),
                          backend_->children()[child]->name()));
}

MetadataPtr CompositeAttentionBuilder::build(int common_prefix_len,
                                             const CommonAttentionMetadata& batch,
                                             bool fast_build) {
  Route route = policy_->select(batch);
  const std::size_t child = backend_->selected_child(route.child);
  return tagged(std::move(route), child,
                builders_[child]->build(common_prefix_len, batch, fast_build));
}

MetadataPtr CompositeAttentionBuilder::build_for_cudagraph_capture(
    const CommonAttentionMetadata& batch) {
  const std::size_t child = backend_->captured_child(capture_child_);
  return tagged({capture_child_, "every capture", {}}, child,
                builders_[child]->build_for_cudagraph_capture(batch));
}

std::optional<int> CompositeAttentionBuilder::reorder_batch_threshold() const {
  std::vector<std::optional<int>> thresholds;
  thresholds.reserve(builders_.size());
  for (const auto& builder : builders_) thresholds.push_back(builder->reorder_batch_threshold());
  return common_reorder_threshold(thresholds);
}

void CompositeAttentionBuilder::set_kernel_block_size(int block_size) {
  AttentionMetadataBuilder::set_kernel_block_size(block_size);
  for (const auto& builder : builders_) builder->set_kernel_block_size(block_size);
}

bool CompositeAttentionBuilder::provides_workspace() const {
  return std::any_of(builders_.begin(), builders_.end(),
                     [](const auto& builder) { return builder->provides_workspace(); });
}

// The caller asks only the group that provides the buffer, so the children that share it get it
// here.
WorkspacePtr CompositeAttentionBuilder::workspace() {
  for (const auto& builder : builders_) {
    if (!builder->provides_workspace()) continue;
    WorkspacePtr buffer = builder->workspace();
    set_workspace(buffer);
    return buffer;
  }
  return nullptr;
}

bool CompositeAttentionBuilder::takes_workspace() const {
  return std::any_of(builders_.begin(), builders_.end(),
                     [](const auto& builder) { return builder->takes_workspace(); });
}

void CompositeAttentionBuilder::set_workspace(WorkspacePtr buffer) {
  for (const auto& builder : builders_) {
    if (builder->takes_workspace()) builder->set_workspace(buffer);
  }
}

std::vector<RouteStep> route_of(const AttentionMetadata& metadata) {
  std::vector<RouteStep> steps;
  for (const AttentionMetadata* one = &metadata; one != nullptr; one = one->inner()) {
    const auto* composite = dynamic_cast<const CompositeMetadata*>(one);
    if (composite != nullptr) steps.push_back({&composite->backend(), composite->route()});
  }
  return steps;
}

const AttentionMetadata& leaf_of(const AttentionMetadata& metadata) {
  const AttentionMetadata* one = &metadata;
  while (one->inner() != nullptr) one = one->inner();
  return *one;
}

}  // namespace attn
