#include "attn/own_selector.h"

#include <fmt/core.h>

#include <utility>

#include "attn/described_executable.h"
#include "attn/error.h"
#include "selector/kernel_facts.h"
#include "selector/platforms.h"
#include "selector/python_text.h"

namespace attn {
namespace {

bool has(const Capabilities& capabilities, OpKind operation) {
  for (const OpKind one : capabilities.operations) {
    if (one == operation) return true;
  }
  return false;
}

// The row to hold a layer against: that of its own operation, else of the first that there is, so
// that the reasons say what the backend is.
OpKind operation_for(const Capabilities& capabilities, const AttentionSelectorConfig& config) {
  const OpKind wanted = !config.use_mla     ? OpKind::kAttention
                        : config.use_sparse ? OpKind::kMlaSparse
                                            : OpKind::kMla;
  for (const OpKind one : {wanted, OpKind::kAttention, OpKind::kMla, OpKind::kMlaSparse}) {
    if (has(capabilities, one)) return one;
  }
  return wanted;
}

void choose_first_valid(Selection& out, const std::string& asked) {
  const std::vector<std::string> valid = valid_names(out.candidates);
  if (valid.empty()) {
    out.error = VllmError("ValueError",
                          fmt::format("No valid attention backend found for own with {}. Reasons: "
                                      "{}.",
                                      asked, refused_text(out.candidates)));
    return;
  }
  log_info(out, fmt::format("Using {} attention backend out of potential backends: {}.",
                            valid.front(), python_list(valid)));
  out.backend = valid.front();
  out.path = "attn_oracle." + valid.front();
}

}  // namespace

OwnSelector::OwnSelector(std::vector<OwnBackend> best_first) : backends_(std::move(best_first)) {}

const OwnBackend* OwnSelector::find(std::string_view name) const {
  for (const OwnBackend& own : backends_) {
    if (own.name == name) return &own;
  }
  return nullptr;
}

std::vector<std::string> OwnSelector::reasons(const OwnBackend& own,
                                              const AttentionSelectorConfig& config) const {
  if (!own.backend) return {own.reason};
  const Capabilities& capabilities = own.backend->capabilities();
  const BackendCheck check(
      describe_executable(own.name, capabilities, operation_for(capabilities, config)));
  return reason_texts(check.validate(Requirements(config), kNoFacts), check, kNoFacts, config);
}

Selection OwnSelector::select(const SelectionRequest& request) const {
  Selection out;
  if (!request.backend) {
    for (const OwnBackend& own : backends_) {
      if (!own.automatic || !own.backend) continue;
      out.candidates.push_back({own.name, reasons(own, request.config)});
    }
    choose_first_valid(out, to_string(request.config));
    return out;
  }
  const OwnBackend* own = find(*request.backend);
  if (own == nullptr) throw Error(fmt::format("unknown backend '{}'", *request.backend));
  const std::vector<std::string> refused = reasons(*own, request.config);
  if (!refused.empty()) {
    out.error = VllmError("ValueError", fmt::format("Selected backend {} is not valid for this "
                                                    "configuration. Reason: {}",
                                                    own->name, python_list(refused)));
    return out;
  }
  log_info(out, fmt::format("Using {} backend.", own->name));
  out.backend = own->name;
  out.path = "attn_oracle." + own->name;
  return out;
}

Selection OwnSelector::select(const AttentionProblem& problem, bool conditioning) const {
  Selection out;
  for (const OwnBackend& own : backends_) {
    if (!own.automatic || !own.backend) continue;
    Candidate candidate{own.name, own.backend->supports(problem)};
    if (conditioning && !own.backend->capabilities().conditioning) {
      candidate.reasons.emplace_back("conditioning sums not supported");
    }
    out.candidates.push_back(std::move(candidate));
  }
  choose_first_valid(out, to_string(problem));
  return out;
}

}  // namespace attn
