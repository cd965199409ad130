// Selection among backends that run here, and described backends that one of them stands for.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attn/backend.h"
#include "attn/selector.h"

namespace attn {

// A backend by its name. Without an object it cannot be used here, for the reason given.
struct OwnBackend {
  std::string name;
  std::shared_ptr<const Backend> backend;
  std::string reason;
  bool automatic = true;  // an automatic selection tries it
};

// The first backend without reasons, in the order given; reasons are those of its rows
// (attn/described_executable.h) for a layer, those of Backend::supports for a problem. Candidates
// are the automatic ones that can be used here, all of them. The path of a backend is
// "attn_oracle.NAME"; errors and log lines read as those of vLLM's CUDA platform. Immutable; safe
// to use from many threads.
class OwnSelector {
 public:
  explicit OwnSelector(std::vector<OwnBackend> best_first);

  // Throws Error for a requested backend that is none of them.
  Selection select(const SelectionRequest& request) const;
  // An automatic selection; with `conditioning` the backend must answer conditioning sums too.
  Selection select(const AttentionProblem& problem, bool conditioning = false) const;

  // nullptr when there is none of this name.
  const OwnBackend* find(std::string_view name) const;

  // Why a backend cannot serve such a layer: its reasons in order, or that it cannot be used here.
  std::vector<std::string> reasons(const OwnBackend& own,
                                   const AttentionSelectorConfig& config) const;

 private:
  std::vector<OwnBackend> backends_;
};

// Every reason why `executable` cannot stand for a described backend: what that one accepts in some
// layer and this one refuses, as "dtype not supported (dtype=float16)", in the order of reasons;
// and the log-sum-exp of a decode, if it declares one. Empty = it can.
std::vector<std::string> unfulfilled(const DescribedBackend& declared, const Backend& executable);

// Which executable backends stand for described ones.
class BackendBindings {
 public:
  // `member` of the selector, as described on its device in its environment. Replaces an earlier
  // binding. Throws Error for a member that nothing describes, or, with the reasons, when the
  // backend cannot stand for it.
  void bind(const BackendSelector& selector, std::string_view member,
            std::shared_ptr<const Backend> executable);

  // Throws Error "FLASH_ATTN only describes; it cannot run" when nothing stands for it.
  const Backend& executable(std::string_view member) const;

 private:
  std::map<std::string, std::shared_ptr<const Backend>, std::less<>> bound_;
};

}  // namespace attn
