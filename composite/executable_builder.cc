#include "composite/executable_builder.h"

#include <fmt/core.h>

#include "attn/error.h"

namespace attn {
namespace {

class ExecutableBuilder final : public AttentionMetadataBuilder {
 public:
  explicit ExecutableBuilder(const ExecutableBackend& backend)
      : backend_(backend), workspaces_(std::make_shared<WorkspacePool>()) {}

  const AttentionBackend& backend() const override { return backend_; }

  MetadataPtr build(int /*common_prefix_len*/, const CommonAttentionMetadata& batch,
                    bool /*fast_build*/) override {
    validate(batch);
    return std::make_shared<ExecutableMetadata>(backend_, batch, workspaces_);
  }

  bool supports_update_block_table() const override { return true; }

  MetadataPtr update_block_table(const AttentionMetadata& metadata, const BlockTable& table,
                                 const std::vector<std::int64_t>& slot_mapping) override {
    CommonAttentionMetadata batch = executable_metadata(metadata, backend_).batch();
    batch.block_table = table;
    batch.slot_mapping = slot_mapping;
    return build(0, batch, false);
  }

  bool provides_workspace() const override { return true; }
  WorkspacePtr workspace() override { return workspaces_; }
  bool takes_workspace() const override { return true; }

  // Memory of another kind is of no use here.
  void set_workspace(WorkspacePtr buffer) override {
    if (auto pool = std::dynamic_pointer_cast<WorkspacePool>(std::move(buffer))) {
      workspaces_ = std::move(pool);
    }
  }

 private:
  const ExecutableBackend& backend_;
  std::shared_ptr<WorkspacePool> workspaces_;
};

}  // namespace

const ExecutableMetadata& executable_metadata(const AttentionMetadata& metadata,
                                              const ExecutableBackend& backend) {
  expect_built_by(metadata, backend);
  const auto* own = dynamic_cast<const ExecutableMetadata*>(&metadata);
  if (own == nullptr) {
    throw Error(fmt::format("metadata of {} is of another kind", backend.name()));
  }
  return *own;
}

std::unique_ptr<AttentionMetadataBuilder> make_executable_builder(
    const ExecutableBackend& backend) {
  return std::make_unique<ExecutableBuilder>(backend);
}

}  // namespace attn
