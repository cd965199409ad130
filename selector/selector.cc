#include "attn/selector.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "attn/error.h"
#include "selector/platforms.h"
#include "selector/python_text.h"
#include "selector/vllm_backends.h"

namespace attn {
namespace {

SelectorFacts checked(SelectorFacts facts) {
  if (facts.platform == Platform::kRocm) {
    const DeviceCapability own = capability_of_gcn_arch(facts.environment.gcn_arch);
    if (facts.capability && facts.capability != own) {
      throw Error(fmt::format("capability is {}.{}, but {} has {}.{}", facts.capability->major,
                              facts.capability->minor, facts.environment.gcn_arch, own.major,
                              own.minor));
    }
    facts.capability = own;
  }
  const bool has_capability =
      facts.platform == Platform::kCuda || facts.platform == Platform::kRocm;
  if (facts.capability.has_value() != has_capability) {
    throw Error(fmt::format("platform {} {} a capability", name(facts.platform),
                            has_capability ? "needs" : "has not"));
  }
  return facts;
}

// The errors that the environment says importing a class raises.
void expect_import(const SelectorEnvironment& environment, std::string_view member) {
  const auto found = environment.import_errors.find(std::string(member));
  if (found == environment.import_errors.end()) return;
  const std::size_t colon = found->second.find(": ");
  if (colon == std::string::npos) throw VllmError(found->second, "");
  throw VllmError(found->second.substr(0, colon), found->second.substr(colon + 2));
}

}  // namespace

std::string_view name(LogLevel level) { return level == LogLevel::kInfo ? "info" : "warning"; }

BackendSelector::BackendSelector(SelectorFacts facts, BackendRegistry registry)
    : facts_(checked(std::move(facts))), registry_(std::move(registry)) {
  describe_all();
}

void BackendSelector::describe_all() {
  const BackendRegistry defaults(RegistryKind::kAttention);
  for (const auto rows : {dense_backends(), mla_backends(), other_platform_backends()}) {
    for (const BackendRow& row : rows) {
      by_path_.emplace(defaults.path(row.member), BackendCheck(row.describe(facts_)));
    }
  }
}

const BackendCheck& BackendSelector::check(std::string_view member) const {
  expect_import(facts_.environment, member);
  const std::string path = registry_.path(member);
  registry_.expect_class(member);
  const auto found = by_path_.find(path);
  if (found != by_path_.end()) return found->second;
  const std::string module = registry_.module(member);
  throw VllmError("AttributeError", fmt::format("module '{}' has no attribute '{}'", module,
                                                path.substr(module.size() + 1)));
}

Selection BackendSelector::select(const SelectionRequest& request) const {
  if (request.backend && !registry_.contains(*request.backend)) {
    try {
      registry_.at(*request.backend);
    } catch (const VllmError& error) {
      throw Error(error.what());
    }
  }
  Selection out;
  try {
    switch (facts_.platform) {
      case Platform::kCuda:
        select_on_cuda(*this, request, out);
        break;
      case Platform::kRocm:
        select_on_rocm(*this, request, out);
        break;
      case Platform::kXpu:
        select_on_xpu(*this, request, out);
        break;
      case Platform::kCpu:
        select_on_cpu(*this, request, out);
        break;
    }
  } catch (const VllmError& error) {
    out.error = error;
  }
  return out;
}

void log_info(Selection& out, std::string text) {
  out.logs.push_back({LogLevel::kInfo, std::move(text)});
}
void log_warning(Selection& out, std::string text) {
  out.logs.push_back({LogLevel::kWarning, std::move(text)});
}

void choose(const BackendSelector& selector, std::string_view member, Selection& out) {
  out.path = selector.registry().path(member);
  out.backend = std::string(member);
}

std::vector<std::string> reasons_of(const BackendSelector& selector, std::string_view member,
                                    const AttentionSelectorConfig& config) {
  const BackendCheck& check = selector.check(member);
  const Reasons reasons = check.validate(Requirements(config), selector.facts());
  return reason_texts(reasons, check, selector.facts(), config);
}

std::string refused_text(const std::vector<Candidate>& candidates) {
  std::string text;
  for (const Candidate& candidate : candidates) {
    if (candidate.reasons.empty()) continue;
    text += fmt::format("{}{}: [{}]", text.empty() ? "" : ", ", candidate.name,
                        joined(candidate.reasons));
  }
  return fmt::format("{{{}}}", text);
}

std::vector<std::string> valid_names(const std::vector<Candidate>& candidates) {
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates) {
    if (candidate.reasons.empty()) names.push_back(candidate.name);
  }
  return names;
}

std::vector<std::string> refused_names(const std::vector<Candidate>& candidates) {
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates) {
    if (!candidate.reasons.empty()) names.push_back(candidate.name);
  }
  return names;
}

void refuse_requested(std::string_view member, std::string_view reason) {
  throw VllmError("ValueError",
                  fmt::format("Selected backend AttentionBackendEnum.{} is not valid for this "
                              "configuration. Reason: {}",
                              member, reason));
}

}  // namespace attn
