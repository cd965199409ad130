#include "composite/workspace_pool.h"

#include <algorithm>
#include <new>
#include <utility>

namespace attn {

WorkspaceBlock::WorkspaceBlock(std::size_t bytes)
    : memory_(
          static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kWorkspaceAlignment}))),
      bytes_(bytes) {}

void WorkspaceBlock::Free::operator()(std::byte* memory) const {
  ::operator delete(memory, std::align_val_t{kWorkspaceAlignment});
}

WorkspaceBlock WorkspacePool::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(idle_.begin(), idle_.end(), [&](const WorkspaceBlock& block) {
    return block.workspace().bytes >= bytes;
  });
  if (found == idle_.end()) {
    if (!idle_.empty()) idle_.pop_back();  // needs have grown: a larger one takes its place
    return WorkspaceBlock(bytes);
  }
  WorkspaceBlock block = std::move(*found);
  idle_.erase(found);
  return block;
}

void WorkspacePool::give_back(WorkspaceBlock block) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(block));
}

}  // namespace attn
