// Metadata of executable backends: the batch itself, and the plans that answer it.
#pragma once

#include <memory>
#include <utility>

#include "attn/metadata_builder.h"
#include "composite/executable_backend.h"
#include "composite/plan_pool.h"

namespace attn {

class ExecutableMetadata final : public AttentionMetadata {
 public:
  ExecutableMetadata(const ExecutableBackend& backend, CommonAttentionMetadata batch,
                     std::shared_ptr<WorkspacePool> workspaces)
      : backend_(backend),
        batch_(std::move(batch)),
        plans_(backend.answering(), std::move(workspaces)) {}

  const AttentionBackend& backend() const override { return backend_; }
  const CommonAttentionMetadata& batch() const { return batch_; }
  const PlanPool& plans() const { return plans_; }

 private:
  const ExecutableBackend& backend_;
  CommonAttentionMetadata batch_;
  PlanPool plans_;
};

// `metadata` of a builder of this class of backend; throws Error for any other.
const ExecutableMetadata& executable_metadata(const AttentionMetadata& metadata,
                                              const ExecutableBackend& backend);

std::unique_ptr<AttentionMetadataBuilder> make_executable_builder(const ExecutableBackend& backend);

}  // namespace attn
