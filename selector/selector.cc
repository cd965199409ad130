#include "attn/selector.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "attn/error.h"
#include "core/contains.h"
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

// True when an added backend is the answer on a platform that has no list of candidates.
bool select_added(const BackendSelector& selector, const SelectionRequest& request,
                  Selection& out) {
  const Platform platform = selector.facts().platform;
  if (platform == Platform::kCuda || platform == Platform::kRocm) return false;
  if (request.backend) {
    if (!selector.is_added(*request.backend)) return false;
    select_validated(selector, request, out);
    return true;
  }
  for (const std::string& name : selector.added_first()) {
    if (!reasons_of(selector, name, request.config).empty()) continue;
    log_info(out, fmt::format("Using {} attention backend.", name));
    choose(selector, name, out);
    return true;
  }
  return false;
}

}  // namespace

std::string_view name(LogLevel level) { return level == LogLevel::kInfo ? "info" : "warning"; }

BackendSelector::BackendSelector(SelectorFacts facts, BackendRegistry registry,
                                 std::vector<AddedBackend> added)
    : facts_(checked(std::move(facts))), registry_(std::move(registry)) {
  describe_all();
  for (const AddedBackend& one : added) add(one);
  std::stable_sort(places_.begin(), places_.end(),
                   [](const Place& a, const Place& b) { return a.priority < b.priority; });
}

void BackendSelector::add(const AddedBackend& added) {
  BackendRegistry elsewhere = registry_;
  const bool here = contains(added.platforms, facts_.platform);
  try {
    (here ? registry_ : elsewhere).add(added.name, added.path);
  } catch (const VllmError& error) {
    throw Error(error.what());
  }
  if (!here) return;
  added_.emplace(added.name, BackendCheck(added.describe(facts_)));
  if (added.priority) places_.push_back({*added.priority, added.name});
}

std::vector<std::string> BackendSelector::with_added(
    std::span<const std::string_view> candidates) const {
  std::vector<std::string> names(candidates.begin(), candidates.end());
  std::size_t next = 0;
  for (const Place& place : places_) {
    const std::size_t at =
        std::min(std::max(next, static_cast<std::size_t>(place.priority)), names.size());
    names.insert(names.begin() + static_cast<std::ptrdiff_t>(at), place.name);
    next = at + 1;
  }
  return names;
}

std::vector<std::string> BackendSelector::added_first() const {
  std::vector<std::string> names;
  for (const Place& place : places_) {
    if (place.priority == 0) names.push_back(place.name);
  }
  return names;
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
  if (const auto own = added_.find(member); own != added_.end()) return own->second;
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
    if (select_added(*this, request, out)) return out;
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
