// The image-mask policy of vLLM's composites (MMPrefixAttentionRouting).
#pragma once

#include "attn/routing_policy.h"

namespace attn {

class MmPrefixPolicy final : public RoutingPolicy {
 public:
  // Throws VllmError KeyError for a layer name that the model lacks; looks at the layers in order,
  // up to the first unclamped window.
  explicit MmPrefixPolicy(const BuilderArguments& arguments);

  Route select(const CommonAttentionMetadata& batch) const override;
  bool unclamped_window() const { return unclamped_window_; }

 private:
  std::optional<std::string> forcing(const CommonAttentionMetadata& batch,
                                     const std::vector<std::int32_t>& bounds,
                                     const RowImages& images) const;

  bool unclamped_window_ = false;
};

}  // namespace attn
