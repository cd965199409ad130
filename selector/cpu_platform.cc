// CPU: no validation; the request hardly counts.
#include <fmt/core.h>

#include "selector/platforms.h"

namespace attn {
namespace {

void say_that_it_cannot_be(const SelectionRequest& request, Selection& out) {
  log_info(out,
           fmt::format("Cannot use AttentionBackendEnum.{} backend on CPU.", *request.backend));
}

void select_cpu_mla(const BackendSelector& selector, const SelectionRequest& request,
                    Selection& out) {
  static constexpr CacheDTypeSet kAccepted =
      CacheDTypeSet{CacheDType::kAuto, CacheDType::kBFloat16, CacheDType::kFloat16}.with(
          std::nullopt);
  const std::optional<CacheDType> kv = request.config.kv_cache_dtype;
  if (!kAccepted.contains(kv)) {
    throw VllmError(
        "ValueError",
        fmt::format("--kv-cache-dtype {} is not supported by MLA attention on CPU.", name(*kv)));
  }
  const SelectorEnvironment& e = selector.facts().environment;
  const bool amx = e.cpu_arch == "X86" && e.cpu_amx_tile && request.backend != "CPU_MLA";
  const bool known =
      !request.backend || request.backend == "AMX_MLA" || (!amx && request.backend == "CPU_MLA");
  if (!known) say_that_it_cannot_be(request, out);
  const char* chosen = amx ? "AMX_MLA" : "CPU_MLA";
  log_info(out, fmt::format("Using {} backend.", chosen));
  choose(selector, chosen, out);
}

}  // namespace

void select_on_cpu(const BackendSelector& selector, const SelectionRequest& request,
                   Selection& out) {
  if (request.config.use_sparse) {
    throw VllmError("NotImplementedError", "Sparse Attention is not supported on CPU.");
  }
  if (request.config.use_mla) return select_cpu_mla(selector, request, out);
  if (request.backend && request.backend != "CPU_ATTN") say_that_it_cannot_be(request, out);
  const std::optional<CacheDType> kv = request.config.kv_cache_dtype;
  if (!selector.check("CPU_ATTN").backend().kv.accepted.contains(kv)) {
    throw VllmError("ValueError", fmt::format("--kv-cache-dtype {} is not supported by the CPU "
                                              "attention backend on this host.",
                                              name(*kv)));
  }
  choose(selector, "CPU_ATTN", out);
}

}  // namespace attn
