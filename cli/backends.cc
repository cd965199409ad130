#include "cli/backends.h"

#include <fmt/core.h>

#include "attn/cpu_backend.h"
#include "attn/error.h"
#include "attn/reference.h"
#include "cli/composite_name.h"
#include "selector/vllm_backends.h"

namespace attn::cli {
namespace {

NamedBackend missing(std::string name, bool automatic) {
  return {std::move(name), nullptr, "not in this build", automatic, {}};
}

std::vector<NamedBackend> make_all() {
  std::vector<NamedBackend> all;
  for (const char* name : {"CUDA_FLASH", "CUDA_DECODE", "CUDA_MLA"})
    all.push_back(missing(name, true));
  all.push_back({"CPU", make_cpu_backend(), "", true, {"portable"}});
  all.push_back(missing("REFERENCE_FAST", true));
  all.push_back({"REFERENCE", make_reference_backend(), "", true, {}});
  for (const char* name : {"SIMT_FLASH", "SIMT_DECODE", "SIMT_MLA", "CUBLAS"}) {
    all.push_back(missing(name, false));
  }
  return all;
}

const NamedBackend* find(const std::string& name) {
  for (const NamedBackend& named : all_backends()) {
    if (named.name == name) return &named;
  }
  return nullptr;
}

// Forms of names whose part is not built.
bool is_known_form(const std::string& name) { return name.starts_with("plugin:"); }

// `backend` answers under the name.
Resolution resolve_named(const NamedBackend& named, const Backend* backend,
                         const AttentionProblem& problem, bool conditioning) {
  Resolution r{named.name, backend, named.isas, {}};
  r.reasons = backend != nullptr ? backend->supports(problem)
                                 : std::vector{fmt::format("{} is {}", named.name, named.reason)};
  if (conditioning && backend != nullptr && !backend->capabilities().conditioning) {
    r.reasons.push_back("conditioning sums not supported");
  }
  return r;
}

// The child that answers, under its own name.
Resolution resolve_composite(const std::string& name, const AttentionProblem& problem,
                             bool conditioning) {
  const NamedComposite& composite = composite_named(name);
  if (!composite.backend) return {name, nullptr, {}, {composite.reason}};
  const Backend* child = composite.backend->route(problem).child;
  return resolve_named(*find(std::string(child->name())), child, problem, conditioning);
}

Resolution resolve_auto(const AttentionProblem& problem, bool conditioning) {
  const Selection selection = own_selector().select(problem, conditioning);
  if (selection.backend) {
    const NamedBackend& chosen = *find(*selection.backend);
    return {chosen.name, chosen.backend.get(), chosen.isas, {}};
  }
  Resolution refused{"auto", nullptr, {}, {}};
  for (const Candidate& candidate : selection.candidates) {
    for (const std::string& reason : candidate.reasons) {
      refused.reasons.push_back(fmt::format("{}: {}", candidate.name, reason));
    }
  }
  return refused;
}

}  // namespace

const std::vector<NamedBackend>& all_backends() {
  static const std::vector<NamedBackend> all = make_all();
  return all;
}

const OwnSelector& own_selector() {
  static const OwnSelector selector([] {
    std::vector<OwnBackend> own;
    for (const NamedBackend& named : all_backends()) {
      own.push_back({named.name, named.backend, named.reason, named.automatic});
    }
    return own;
  }());
  return selector;
}

void require_known_backend(const std::string& name) {
  if (find_backend_row(name) != nullptr) {
    throw Error(fmt::format("{} only describes; it cannot run", name));
  }
  if (is_composite_name(name)) {
    composite_named(name);
    return;
  }
  if (name != "auto" && find(name) == nullptr && !is_known_form(name)) {
    throw Error(fmt::format("unknown backend '{}'; `attn-oracle list backends` names them", name));
  }
}

Resolution resolve_backend(const std::string& name, const AttentionProblem& problem,
                           bool conditioning) {
  require_known_backend(name);
  if (name == "auto") return resolve_auto(problem, conditioning);
  if (is_composite_name(name)) return resolve_composite(name, problem, conditioning);
  if (const NamedBackend* named = find(name)) {
    return resolve_named(*named, named->backend.get(), problem, conditioning);
  }
  return {name, nullptr, {}, {fmt::format("{} is not in this build", name)}};
}

}  // namespace attn::cli
