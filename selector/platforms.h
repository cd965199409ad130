// How each of vLLM's platforms answers a selection request. What vLLM raises is thrown as
// VllmError; what was logged before stays in `out`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attn/selector.h"

namespace attn {

void select_on_cuda(const BackendSelector& selector, const SelectionRequest& request,
                    Selection& out);
void select_on_rocm(const BackendSelector& selector, const SelectionRequest& request,
                    Selection& out);
void select_on_xpu(const BackendSelector& selector, const SelectionRequest& request,
                   Selection& out);
void select_on_cpu(const BackendSelector& selector, const SelectionRequest& request,
                   Selection& out);

// A requested backend is the answer when it is valid, as on CUDA.
void select_validated(const BackendSelector& selector, const SelectionRequest& request,
                      Selection& out);

// Adds a log line.
void log_info(Selection& out, std::string text);
void log_warning(Selection& out, std::string text);

// The member is the answer, by its registered path.
void choose(const BackendSelector& selector, std::string_view member, Selection& out);

// validate_configuration's texts.
std::vector<std::string> reasons_of(const BackendSelector& selector, std::string_view member,
                                    const AttentionSelectorConfig& config);

// "{A: [reason, reason], B: [reason]}" of the refused candidates.
std::string refused_text(const std::vector<Candidate>& candidates);
std::vector<std::string> valid_names(const std::vector<Candidate>& candidates);
std::vector<std::string> refused_names(const std::vector<Candidate>& candidates);

// "Selected backend AttentionBackendEnum.X is not valid for this configuration. Reason: ..."
[[noreturn]] void refuse_requested(std::string_view member, std::string_view reason);

}  // namespace attn
