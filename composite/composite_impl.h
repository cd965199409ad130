// The implementation of a composite: the child that built the metadata answers, child 0 writes the
// cache.
#pragma once

#include <memory>
#include <vector>

#include "attn/composite.h"

namespace attn {

class CompositeAttentionBackend;

class CompositeAttentionImpl final : public AttentionImpl {
 public:
  CompositeAttentionImpl(std::shared_ptr<const CompositeAttentionBackend> backend,
                         const ImplArguments& arguments);

  const AttentionBackend& backend() const override;
  ImplTraits traits() const override;
  void forward(const AttentionMetadata& metadata, const ForwardArguments& arguments) const override;
  void do_kv_cache_update(const CacheUpdate& update) const override;
  bool fused_output_quant_supported() const override;
  bool fused_update_supported(FusedUpdate which) const override;
  void do_fused_update(FusedUpdate which, const CacheUpdate& update) const override;
  std::vector<const AttentionImpl*> variants() const override;
  void process_weights_after_loading(DType activations) override;

 private:
  std::shared_ptr<const CompositeAttentionBackend> backend_;
  std::vector<std::unique_ptr<AttentionImpl>> children_;
};

}  // namespace attn
