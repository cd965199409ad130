// Binds the names of backends to objects: the one place that knows them all.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attn/backend.h"
#include "attn/own_selector.h"

namespace attn::cli {

// A name of the command line. Without an object it cannot be used here, for the reason given.
struct NamedBackend {
  std::string name;
  std::shared_ptr<const Backend> backend;
  std::string reason;
  bool automatic = false;  // `auto` may choose it
  std::vector<std::string>
      isas;  // instruction sets it can use here, the one it uses last; empty = does not say
};

// In the order in which `auto` tries them.
const std::vector<NamedBackend>& all_backends();

// The same names as selection sees them.
const OwnSelector& own_selector();

// What a request of --backend resolved to for one problem.
struct Resolution {
  std::string name;  // of the backend that will run, or of the one that refused
  const Backend* backend = nullptr;
  std::vector<std::string> isas;
  std::vector<std::string> reasons;  // why it cannot answer; empty = it can
};

// Throws Error for a name nobody knows, and for one of vLLM's, which only describes.
void require_known_backend(const std::string& name);

// `name` as given to --backend; of `auto` the first usable backend that supports the problem and,
// with `conditioning`, answers its conditioning sums; of a composite the child that answers.
Resolution resolve_backend(const std::string& name, const AttentionProblem& problem,
                           bool conditioning = false);

}  // namespace attn::cli
