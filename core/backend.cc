#include "attn/backend.h"

#include <fmt/format.h>

#include <cstdint>
#include <new>

#include "attn/error.h"

namespace attn {

void require_supported(const Backend& backend, const AttentionProblem& problem,
                       Workspace workspace) {
  const std::vector<std::string> reasons = backend.supports(problem);
  if (!reasons.empty()) {
    throw Error(fmt::format("{} cannot answer: {}", backend.name(), fmt::join(reasons, "; ")));
  }
  const std::size_t needed = backend.workspace_bytes(problem);
  if (workspace.bytes < needed) {
    throw Error(fmt::format("{} needs a workspace of {} bytes, got {}", backend.name(), needed,
                            workspace.bytes));
  }
  if (reinterpret_cast<std::uintptr_t>(workspace.data) % kWorkspaceAlignment != 0) {
    throw Error(fmt::format("the workspace of {} is not aligned to {} bytes", backend.name(),
                            kWorkspaceAlignment));
  }
}

ExecSpec run_once(const Backend& backend, const AttentionProblem& problem, const Outputs& outputs) {
  require_supported(backend, problem, {nullptr, SIZE_MAX});
  const std::size_t bytes = backend.workspace_bytes(problem);
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete(memory, std::align_val_t{kWorkspaceAlignment});
    }
  };
  const std::unique_ptr<std::byte, Free> memory(
      static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kWorkspaceAlignment})));
  const std::unique_ptr<Plan> plan = backend.prepare(problem, {memory.get(), bytes});
  plan->run(problem, outputs);
  return plan->exec();
}

}  // namespace attn
