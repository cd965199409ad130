#include "cli/backends.h"

#include <fmt/format.h>

#include "attn/cpu_backend.h"
#include "attn/error.h"
#include "attn/reference.h"

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
bool is_known_form(const std::string& name) {
  return name.starts_with("COMPOSITE(") || name.starts_with("plugin:");
}

Resolution resolve_named(const NamedBackend& named, const AttentionProblem& problem,
                         bool conditioning) {
  Resolution r{named.name, named.backend.get(), named.isas, {}};
  r.reasons = named.backend ? named.backend->supports(problem)
                            : std::vector{fmt::format("{} is {}", named.name, named.reason)};
  if (conditioning && named.backend && !named.backend->capabilities().conditioning) {
    r.reasons.push_back("conditioning sums not supported");
  }
  return r;
}

Resolution resolve_auto(const AttentionProblem& problem, bool conditioning) {
  Resolution refused{"auto", nullptr, {}, {}};
  for (const NamedBackend& named : all_backends()) {
    if (!named.automatic || !named.backend) continue;
    Resolution r = resolve_named(named, problem, conditioning);
    if (r.reasons.empty()) return r;
    for (const std::string& reason : r.reasons) {
      refused.reasons.push_back(fmt::format("{}: {}", named.name, reason));
    }
  }
  return refused;
}

}  // namespace

const std::vector<NamedBackend>& all_backends() {
  static const std::vector<NamedBackend> all = make_all();
  return all;
}

void require_known_backend(const std::string& name) {
  if (name != "auto" && find(name) == nullptr && !is_known_form(name)) {
    throw Error(fmt::format("unknown backend '{}'; `attn-oracle list backends` names them", name));
  }
}

Resolution resolve_backend(const std::string& name, const AttentionProblem& problem,
                           bool conditioning) {
  require_known_backend(name);
  if (name == "auto") return resolve_auto(problem, conditioning);
  if (const NamedBackend* named = find(name)) return resolve_named(*named, problem, conditioning);
  return {name, nullptr, {}, {fmt::format("{} is not in this build", name)}};
}

}  // namespace attn::cli
