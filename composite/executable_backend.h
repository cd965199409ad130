// A backend that answers problems, as a backend of an engine.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attn/executable_backend.h"

namespace attn {

class ExecutableBackend : public AttentionBackend {
 public:
  ExecutableBackend(std::shared_ptr<const Backend> backend,
                    std::shared_ptr<const Backend> cache_writer);

  const std::shared_ptr<const Backend>& answering() const { return backend_; }
  // Null when nobody writes the cache.
  const std::shared_ptr<const Backend>& cache_writer() const { return cache_writer_; }

  std::string name() const override;
  ClassName full_class_name() const override;
  DescribedBackend describe(const std::optional<DeviceCapability>& capability) const override;
  BlockSizes kernel_block_sizes(const KvCacheSpec& spec) const override;
  GraphSupport cudagraph_support(const BuilderArguments&) const override {
    return GraphSupport::kNever;
  }
  std::vector<std::string> reasons_against(const CommonAttentionMetadata& batch,
                                           const BuilderArguments& group) const override;
  std::unique_ptr<AttentionMetadataBuilder> make_builder(
      const BuilderArguments& arguments) const override;
  std::unique_ptr<AttentionImpl> make_impl(const ImplArguments& arguments) const override;

 private:
  std::shared_ptr<const Backend> backend_;
  std::shared_ptr<const Backend> cache_writer_;
};

}  // namespace attn
