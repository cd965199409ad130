#include "composite/executable_backend.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "attn/described_executable.h"
#include "attn/error.h"
#include "composite/executable_builder.h"
#include "composite/executable_impl.h"
#include "composite/idle_ranges.h"
#include "composite/image_ranges.h"
#include "core/contains.h"

namespace attn {
namespace {

bool answers(const std::shared_ptr<const Backend>& backend, OpKind operation) {
  if (!backend) return false;
  const std::vector<OpKind>& all = backend->capabilities().operations;
  return contains(all, operation);
}

bool has_window(const BuilderArguments& group) {
  return std::any_of(group.model.begin(), group.model.end(), [&](const LayerTraits& layer) {
    const auto& names = group.layer_names;
    return layer.sliding_window && *layer.sliding_window && contains(names, layer.name);
  });
}

}  // namespace

ExecutableBackend::ExecutableBackend(std::shared_ptr<const Backend> backend,
                                     std::shared_ptr<const Backend> cache_writer) {
  if (!answers(backend, OpKind::kAttention)) {
    throw Error(fmt::format("{} does not answer attention", backend ? backend->name() : "nobody"));
  }
  if (cache_writer && !answers(cache_writer, OpKind::kCacheWrite)) {
    throw Error(fmt::format("{} does not write caches", cache_writer->name()));
  }
  cache_writer_ = answers(backend, OpKind::kCacheWrite) ? backend : std::move(cache_writer);
  backend_ = without_idle_ranges(std::move(backend));
}

std::string ExecutableBackend::name() const { return std::string(backend_->name()); }

ClassName ExecutableBackend::full_class_name() const { return {"attn_oracle", name()}; }

DescribedBackend ExecutableBackend::describe(const std::optional<DeviceCapability>&) const {
  DescribedBackend described =
      describe_executable(name(), backend_->capabilities(), OpKind::kAttention);
  described.dcp = false;  // a batch of one rank's share is no problem
  described.update_block_table = true;
  return described;
}

BlockSizes ExecutableBackend::kernel_block_sizes(const KvCacheSpec&) const {
  return describe(std::nullopt).blocks.sizes;
}

std::vector<std::string> ExecutableBackend::reasons_against(const CommonAttentionMetadata& batch,
                                                            const BuilderArguments& group) const {
  validate(batch);
  const Capabilities& c = backend_->capabilities();
  std::vector<std::string> reasons;
  const auto expect = [&](bool used, Feature feature, std::string_view what) {
    if (used && !c.has(feature)) reasons.push_back(fmt::format("{} not supported", what));
  };
  if (!c.head_size.allows(group.spec.head_size)) {
    reasons.push_back(fmt::format("head_size {} not supported", group.spec.head_size));
  }
  expect(!batch.causal, Feature::kNonCausal, "non-causal attention");
  expect(batch.causal_per_req.has_value(), Feature::kCausalPerRequest, "causal flag per request");
  expect(has_window(group), Feature::kSlidingWindow, "sliding window");
  expect(batch.rswa_prefix_lens && has_window(group), Feature::kRswa, "R-SWA");
  expect(!rows_with_image_masks(batch, group).empty(), Feature::kMmPrefix,
         "multimodal prefix ranges");
  return reasons;
}

std::unique_ptr<AttentionMetadataBuilder> ExecutableBackend::make_builder(
    const BuilderArguments&) const {
  return make_executable_builder(*this);
}

std::unique_ptr<AttentionImpl> ExecutableBackend::make_impl(const ImplArguments& arguments) const {
  return make_executable_impl(*this, arguments);
}

AttentionBackendPtr make_executable_backend(std::shared_ptr<const Backend> backend,
                                            std::shared_ptr<const Backend> cache_writer) {
  return std::make_shared<ExecutableBackend>(std::move(backend), std::move(cache_writer));
}

}  // namespace attn
