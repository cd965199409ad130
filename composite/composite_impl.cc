#include "composite/composite_impl.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>

#include "attn/error.h"
#include "attn/vllm_error.h"
#include "composite/composite_attention_backend.h"
#include "composite/composite_builder.h"

namespace attn {

CompositeAttentionImpl::CompositeAttentionImpl(
    std::shared_ptr<const CompositeAttentionBackend> backend, const ImplArguments& arguments)
    : backend_(std::move(backend)) {
  const std::vector<AttentionBackendPtr>& children = backend_->children();
  children_.push_back(children.front()->make_impl(arguments));
  for (std::size_t i = 1; i < children.size(); ++i) {
    try {
      children_.push_back(children[i]->make_impl(arguments));
    } catch (const VllmError& error) {
      if (error.type() != "TypeError") throw;
      std::throw_with_nested(VllmError(
          "ValueError",
          fmt::format("Causal attention backend {} does not accept the attention arguments "
                      "required by the general backend {}: {}",
                      children[i]->name(), children.front()->name(), error.what())));
    }
  }
}

const AttentionBackend& CompositeAttentionImpl::backend() const { return *backend_; }

ImplTraits CompositeAttentionImpl::traits() const {
  const ImplTraits general = children_.front()->traits();
  ImplTraits traits = children_.back()->traits();
  traits.num_heads = general.num_heads;
  traits.num_kv_heads = general.num_kv_heads;
  traits.head_size = general.head_size;
  traits.scale = general.scale;
  traits.kv_cache_dtype = general.kv_cache_dtype;
  traits.supports_pcp = general.supports_pcp;
  traits.supports_quant_query_input =
      std::all_of(children_.begin(), children_.end(),
                  [](const auto& child) { return child->traits().supports_quant_query_input; });
  return traits;
}

void CompositeAttentionImpl::forward(const AttentionMetadata& metadata,
                                     const ForwardArguments& arguments) const {
  const auto* own = dynamic_cast<const CompositeMetadata*>(&metadata);
  if (backend_->conduct() == Conduct::kVllm) {
    const std::size_t child = own == nullptr ? 0 : backend_->selected_child(own->route().child);
    return children_[child]->forward(metadata, arguments);
  }
  expect_built_by(metadata, *backend_);
  if (own == nullptr)
    throw Error(fmt::format("metadata of {} is no composite's", backend_->name()));
  children_[static_cast<std::size_t>(own->route().child)]->forward(*own->inner(), arguments);
}

void CompositeAttentionImpl::do_kv_cache_update(const CacheUpdate& update) const {
  children_.front()->do_kv_cache_update(update);
}

bool CompositeAttentionImpl::fused_output_quant_supported() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const auto& child) { return child->fused_output_quant_supported(); });
}

// vLLM's composite does not forward the update with multimodal rotary positions.
bool CompositeAttentionImpl::fused_update_supported(FusedUpdate which) const {
  return which != FusedUpdate::kQkNormMrope && children_.front()->fused_update_supported(which);
}

void CompositeAttentionImpl::do_fused_update(FusedUpdate which, const CacheUpdate& update) const {
  if (which == FusedUpdate::kQkNormMrope) return AttentionImpl::do_fused_update(which, update);
  children_.front()->do_fused_update(which, update);
}

std::vector<const AttentionImpl*> CompositeAttentionImpl::variants() const {
  std::vector<const AttentionImpl*> variants;
  variants.reserve(children_.size());
  for (const auto& child : children_) variants.push_back(child.get());
  return variants;
}

void CompositeAttentionImpl::process_weights_after_loading(DType activations) {
  for (const auto& child : children_) child->process_weights_after_loading(activations);
}

}  // namespace attn
