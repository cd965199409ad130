// Plans of one backend for one batch, kept between the layers that answer it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "attn/backend.h"
#include "composite/workspace_pool.h"

namespace attn {

// Every problem given to a pool must have the same query lengths. Thread-safe: a plan serves one
// call at a time, and calls that come together get plans of their own.
class PlanPool {
 public:
  PlanPool(std::shared_ptr<const Backend> backend, std::shared_ptr<WorkspacePool> workspaces);
  ~PlanPool();
  PlanPool(const PlanPool&) = delete;
  PlanPool& operator=(const PlanPool&) = delete;

  // Answers with a kept plan for the same shapes and options, or with a new one. Throws Error when
  // the backend does not support the problem.
  void run(const AttentionProblem& problem, const Outputs& outputs) const;

 private:
  struct Entry;

  std::unique_ptr<Entry> take(const std::vector<std::int64_t>& key) const;
  std::unique_ptr<Entry> prepare(const AttentionProblem& problem,
                                 std::vector<std::int64_t> key) const;

  std::shared_ptr<const Backend> backend_;
  std::shared_ptr<WorkspacePool> workspaces_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Entry>> idle_;
};

}  // namespace attn
