// ROCm: candidates by AITER's switches, validation, layouts of the run's other layers.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/contains.h"
#include "selector/kernel_facts.h"
#include "selector/platforms.h"
#include "selector/python_text.h"

namespace attn {
namespace {

constexpr std::string_view kTurboquantLayout = "no KV cache layout in common with TURBOQUANT";
constexpr std::string_view kUltraquantLayout = "no KV cache layout in common with ULTRAQUANT";

using NameList = std::vector<std::string_view>;

NameList mla_candidates(const SelectorFacts& facts) {
  const SelectorEnvironment& e = facts.environment;
  if (!aiter_supported(facts) || !e.aiter_enabled || !e.aiter_mla) return {"TRITON_MLA"};
  return {"ROCM_AITER_MLA", "TRITON_MLA", "ROCM_AITER_TRITON_MLA"};
}

NameList candidates_of(const SelectorFacts& facts, const AttentionSelectorConfig& config) {
  const SelectorEnvironment& e = facts.environment;
  if (config.use_sparse) return {"ROCM_AITER_MLA_SPARSE"};
  if (config.use_mla) return mla_candidates(facts);
  const bool supported = aiter_supported(facts);
  const bool cross = e.model && e.model->attn_type == AttentionType::kEncoderDecoder;
  NameList names;
  if (!supported && e.aiter_found && e.aiter_enabled && rdna_version(facts) == 4) {
    names.push_back("ROCM_AITER_UNIFIED_ATTN");
  }
  if (!config.use_kv_connector && !cross) names.push_back("ROCM_ATTN");
  if (supported && e.aiter_enabled && e.aiter_mha) names.push_back("ROCM_AITER_FA");
  if (supported) names.push_back("ROCM_AITER_UNIFIED_ATTN");
  names.insert(names.end(), {"TRITON_ATTN", "TURBOQUANT", "ROCM_OCTAVE", "ULTRAQUANT"});
  return names;
}

// A backend that declares no layouts takes any.
bool shares_layout(const DescribedBackend& backend, const DescribedBackend& other) {
  if (!backend.layouts || !other.layouts) return true;
  return std::any_of(backend.layouts->begin(), backend.layouts->end(),
                     [&](CacheLayout layout) { return contains(*other.layouts, layout); });
}

std::vector<std::string> rocm_reasons(const BackendSelector& selector, std::string_view member,
                                      const AttentionSelectorConfig& config, bool requested) {
  std::vector<std::string> reasons;
  try {
    reasons = reasons_of(selector, member, config);
    if (!reasons.empty()) return reasons;
    const DescribedBackend& backend = selector.check(member).backend();
    const CacheDType run = selector.facts().environment.cache_dtype;
    if (is_turboquant(run) && !shares_layout(backend, selector.check("TURBOQUANT").backend())) {
      reasons.emplace_back(kTurboquantLayout);
    } else if (requested && run == CacheDType::kUltraquant4Bit &&
               !shares_layout(backend, selector.check("ULTRAQUANT").backend())) {
      reasons.emplace_back(kUltraquantLayout);
    }
  } catch (const VllmError& error) {
    if (!is_import_error(error.type())) throw;
    reasons = {"ImportError"};
  }
  return reasons;
}

// True when the request was answered; false when automatic selection follows.
bool select_requested(const BackendSelector& selector, const SelectionRequest& request,
                      Selection& out) {
  const std::string& member = *request.backend;
  const AttentionSelectorConfig& config = request.config;
  const std::vector<std::string> reasons = rocm_reasons(selector, member, config, true);
  if (reasons.empty()) {
    log_info(out, fmt::format("Using {} backend (selected via --attention-backend).", member));
    choose(selector, member, out);
    return true;
  }
  const CacheDType run = selector.facts().environment.cache_dtype;
  const bool ultraquant = run == CacheDType::kUltraquant4Bit;
  const bool mixed = is_turboquant(run) || ultraquant ||
                     (config.kv_cache_dtype && is_turboquant(*config.kv_cache_dtype));
  const bool layer_differs =
      reasons.size() == 1 && (reasons[0] == "kv_cache_dtype not supported" ||
                              reasons[0] == kTurboquantLayout || reasons[0] == kUltraquantLayout);
  if (!mixed || !layer_differs) refuse_requested(member, python_list(reasons));
  log_info(out, fmt::format("Selected backend {} is incompatible with this layer ({}) of the {} "
                            "run; using the auto-selected per-layer backend. Reason: {}",
                            member, to_string(config.attn_type),
                            ultraquant ? "ultraquant" : "turboquant", python_list(reasons)));
  return false;
}

// What cache dtypes the candidates that refused this one declare.
std::string kv_hint(const BackendSelector& selector, const std::vector<Candidate>& candidates) {
  std::set<std::string_view> names;
  for (const Candidate& candidate : candidates) {
    const bool refused_kv = std::any_of(candidate.reasons.begin(), candidate.reasons.end(),
                                        [](const std::string& reason) {
                                          return reason.find("kv_cache_dtype") != std::string::npos;
                                        });
    if (!refused_kv) continue;
    for (const CacheDType dtype : selector.check(candidate.name).backend().kv.declared) {
      names.insert(name(dtype));
    }
  }
  if (names.empty()) return "";
  return fmt::format(" Supported kv_cache_dtype values: {}.",
                     joined(std::vector<std::string>(names.begin(), names.end())));
}

}  // namespace

void select_on_rocm(const BackendSelector& selector, const SelectionRequest& request,
                    Selection& out) {
  if (request.backend && select_requested(selector, request, out)) return;
  const AttentionSelectorConfig& config = request.config;
  for (const std::string& member : selector.with_added(candidates_of(selector.facts(), config))) {
    out.candidates.push_back({member, rocm_reasons(selector, member, config, false)});
  }
  const std::vector<std::string> valid = valid_names(out.candidates);
  if (valid.empty()) {
    throw VllmError("ValueError",
                    fmt::format("No valid attention backend found for rocm with {}. Reasons: {}.{}",
                                to_string(config), refused_text(out.candidates),
                                kv_hint(selector, out.candidates)));
  }
  const std::vector<std::string> refused = refused_names(out.candidates);
  if (refused.empty()) {
    log_info(out, fmt::format("Using {} backend out of potential backends: {}.", valid.front(),
                              python_list(valid)));
  } else {
    log_info(out, fmt::format("Found incompatible backend(s) [{}] with {}. Overriding with {} out "
                              "of potential backends: {}.",
                              joined(refused), to_string(config.attn_type), valid.front(),
                              python_list(valid)));
  }
  choose(selector, valid.front(), out);
}

}  // namespace attn
