// Scratch memory of executable backends, which the builders of an engine share.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "attn/backend.h"
#include "attn/metadata_builder.h"

namespace attn {

// A block of scratch memory, aligned to kWorkspaceAlignment.
class WorkspaceBlock {
 public:
  explicit WorkspaceBlock(std::size_t bytes);

  Workspace workspace() const { return {memory_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_;
};

// Keeps blocks that are not in use. Thread-safe.
class WorkspacePool final : public WorkspaceBuffer {
 public:
  // A kept block of at least `bytes`, or a new one.
  WorkspaceBlock take(std::size_t bytes);
  void give_back(WorkspaceBlock block);

 private:
  std::mutex mutex_;
  std::vector<WorkspaceBlock> idle_;
};

}  // namespace attn
