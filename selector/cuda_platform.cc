// CUDA: priorities by device, validation, the first valid one.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "selector/platforms.h"
#include "selector/python_text.h"

namespace attn {
namespace {

using Names = std::span<const std::string_view>;
template <std::size_t N>
using List = std::array<std::string_view, N>;

// Dense and sparse candidates stand in one list; validation sorts them out.
constexpr List<8> kSm100Quantised = {"FLASHINFER_MLA",        "TOKENSPEED_MLA", "CUTLASS_MLA",
                                     "FLASH_ATTN_MLA",        "FLASHMLA",       "TRITON_MLA",
                                     "FLASHINFER_MLA_SPARSE", "FLASHMLA_SPARSE"};
constexpr List<9> kSm100FewHeads = {"FLASHINFER_MLA",
                                    "TOKENSPEED_MLA",
                                    "CUTLASS_MLA",
                                    "FLASH_ATTN_MLA",
                                    "FLASHMLA",
                                    "TRITON_MLA",
                                    "FLASH_ATTN_MLA_SPARSE_FA4",
                                    "FLASHINFER_MLA_SPARSE",
                                    "FLASHMLA_SPARSE"};
constexpr List<8> kSm100ManyHeads = {
    "FLASHINFER_MLA", "TOKENSPEED_MLA", "CUTLASS_MLA",     "FLASH_ATTN_MLA",
    "FLASHMLA",       "TRITON_MLA",     "FLASHMLA_SPARSE", "FLASHINFER_MLA_SPARSE"};
constexpr List<2> kSm120Mla = {"TRITON_MLA", "FLASHINFER_MLA_SPARSE_SM120"};
constexpr List<7> kMla512 = {"FLASH_ATTN_MLA",
                             "FLASHMLA",
                             "FLASHINFER_MLA",
                             "TRITON_MLA",
                             "FLASHINFER_MLA_SPARSE_SM90",
                             "FLASH_ATTN_MLA_SPARSE",
                             "FLASHMLA_SPARSE"};
constexpr List<7> kMla = {"FLASH_ATTN_MLA",
                          "FLASHMLA",
                          "FLASHINFER_MLA",
                          "TRITON_MLA",
                          "FLASH_ATTN_MLA_SPARSE",
                          "FLASHMLA_SPARSE",
                          "FLASHINFER_MLA_SPARSE_SM90"};
// The composites lead where a layer has a multimodal prefix.
constexpr List<6> kSm100 = {"TRITON_FLASHINFER", "FLASHINFER",     "FLASH_ATTN",
                            "TRITON_ATTN",       "FLEX_ATTENTION", "TURBOQUANT"};
constexpr List<6> kOther = {"TRITON_FLASH_ATTN", "FLASH_ATTN",     "FLASHINFER",
                            "TRITON_ATTN",       "FLEX_ATTENTION", "TURBOQUANT"};

Names mla_priorities(const CudaPriorityInputs& in) {
  if (in.capability.major == 10) {
    if (is_quantised(in.kv_cache_dtype)) return kSm100Quantised;
    if (in.num_heads && *in.num_heads <= 16) return kSm100FewHeads;
    return kSm100ManyHeads;
  }
  if (in.capability.major == 12) return kSm120Mla;
  return in.head_size == 512 ? Names(kMla512) : Names(kMla);
}

std::vector<std::string> candidate_reasons(const BackendSelector& selector, std::string_view member,
                                           const AttentionSelectorConfig& config) {
  try {
    return reasons_of(selector, member, config);
  } catch (const VllmError& error) {
    if (!is_import_error(error.type()) && !is_os_error(error.type())) throw;
    return {fmt::format("{}: {}", error.type(), error.what())};
  }
}

// Backends that only the block size keeps from being chosen deserve a warning.
void warn_of_block_size(const AttentionSelectorConfig& config, const std::string& chosen,
                        Selection& out) {
  if (!config.block_size) return;
  std::vector<std::string> precluded;
  for (const Candidate& candidate : out.candidates) {
    if (candidate.name == chosen) break;
    if (candidate.reasons == std::vector<std::string>{"block_size not supported"}) {
      precluded.push_back(candidate.name);
    }
  }
  if (precluded.empty()) return;
  log_warning(out,
              fmt::format("--block-size {} precluded higher-priority backend(s) {}. Using {} "
                          "instead, which may result in reduced performance. Consider removing "
                          "--block-size to auto-select the optimal block size.",
                          *config.block_size, joined(precluded), chosen));
}

}  // namespace

Names cuda_priorities(const CudaPriorityInputs& in) {
  if (in.use_mla) return mla_priorities(in);
  const bool sm100 = in.capability.major == 10 && !in.use_non_causal;
  const bool composite = in.use_mm_prefix && (sm100 || in.capability.major == 9);
  return Names(sm100 ? kSm100 : kOther).subspan(composite ? 0 : 1);
}

void select_validated(const BackendSelector& selector, const SelectionRequest& request,
                      Selection& out) {
  const std::string& member = *request.backend;
  std::vector<std::string> reasons;
  try {
    reasons = reasons_of(selector, member, request.config);
  } catch (const VllmError& error) {
    if (!is_import_error(error.type()) && !is_os_error(error.type())) throw;
    refuse_requested(member, fmt::format("[{}: {}]", error.type(), error.what()));
  }
  if (!reasons.empty()) refuse_requested(member, python_list(reasons));
  log_info(out, fmt::format("Using AttentionBackendEnum.{} backend.", member));
  choose(selector, member, out);
}

void select_on_cuda(const BackendSelector& selector, const SelectionRequest& request,
                    Selection& out) {
  if (request.backend) return select_validated(selector, request, out);
  const AttentionSelectorConfig& config = request.config;
  const Names names = cuda_priorities({.use_mla = config.use_mla,
                                       .capability = *selector.facts().capability,
                                       .num_heads = request.num_heads,
                                       .kv_cache_dtype = config.kv_cache_dtype,
                                       .use_non_causal = config.use_non_causal,
                                       .head_size = config.head_size,
                                       .use_mm_prefix = config.use_mm_prefix});
  for (const std::string& member : selector.with_added(names)) {
    out.candidates.push_back({member, candidate_reasons(selector, member, config)});
  }
  const std::vector<std::string> valid = valid_names(out.candidates);
  if (valid.empty()) {
    throw VllmError("ValueError",
                    fmt::format("No valid attention backend found for cuda with {}. Reasons: {}.",
                                to_string(config), refused_text(out.candidates)));
  }
  warn_of_block_size(config, valid.front(), out);
  log_info(out, fmt::format("Using {} attention backend out of potential backends: {}.",
                            valid.front(), python_list(valid)));
  choose(selector, valid.front(), out);
}

}  // namespace attn
