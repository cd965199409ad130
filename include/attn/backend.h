// The interface of everything that can answer an AttentionProblem: the reference, our optimized
// backends, composites, third-party plug-ins.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attn/capabilities.h"
#include "attn/contract.h"
#include "attn/output.h"
#include "attn/problem.h"

namespace attn {

// Memory the caller owns and the backend sizes. Contents need not survive between runs; its bytes
// never influence an answer. `data` must be aligned to kWorkspaceAlignment.
inline constexpr std::size_t kWorkspaceAlignment = 64;
struct Workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
};

// A backend's work laid out for one problem shape. It keeps no view of the problem it was made
// from.
class Plan {
 public:
  virtual ~Plan() = default;

  // Answers `problem`, which must have the shapes, lengths and options of the problem the plan was
  // prepared for, with any pointers. Throws Error on outputs that do not fit (nothing is written
  // then). Not for concurrent calls on one plan: they would share its workspace.
  virtual void run(const AttentionProblem& problem, const Outputs& outputs) const = 0;

  // What the plan honours of the problem's exec.
  virtual ExecSpec exec() const = 0;
};

// Thread-safe after construction.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;
  virtual const Capabilities& capabilities() const = 0;

  // What the backend promises about its arithmetic on this problem.
  virtual PrecisionContract contract(const AttentionProblem& problem) const = 0;

  // Reasons why it cannot answer; empty = it can. The default reads the capabilities.
  virtual std::vector<std::string> supports(const AttentionProblem& problem) const {
    return unsupported_reasons(capabilities(), problem);
  }

  // Bytes `prepare` needs with the current number of workers (attn/parallel.h).
  virtual std::size_t workspace_bytes(const AttentionProblem& problem) const = 0;

  // Throws Error when supports() has reasons or the workspace is too small.
  virtual std::unique_ptr<Plan> prepare(const AttentionProblem& problem,
                                        Workspace workspace) const = 0;
};

// Throws Error with the reasons when `backend` cannot answer `problem`, or when `workspace` is
// smaller than the backend asked for or misaligned. For implementations of prepare().
void require_supported(const Backend& backend, const AttentionProblem& problem,
                       Workspace workspace);

// Prepares with a workspace of its own and runs once; what it honoured of exec. For callers that
// are not in a hurry.
ExecSpec run_once(const Backend& backend, const AttentionProblem& problem, const Outputs& outputs);

}  // namespace attn
