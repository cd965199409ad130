#include <fmt/core.h>

#include "attn/selector.h"
#include "selector/vllm_backends.h"

namespace attn {

MambaSelection select_mamba(std::string_view member, bool batch_invariant) {
  const BackendRegistry registry(RegistryKind::kMamba);
  MambaSelection selection;
  try {
    const std::string path = registry.path(member);
    for (const BackendRow& row : mamba_backends()) {
      if (row.member != member) continue;
      const DescribedBackend backend = row.describe({});
      if (batch_invariant && !backend.batch_invariance) {
        throw VllmError(
            "RuntimeError",
            fmt::format("VLLM batch_invariant mode is not supported for {}.", backend.name));
      }
      selection.get_name = backend.name;
    }
    selection.path = path;
  } catch (const VllmError& error) {
    selection.error = error;
  }
  return selection;
}

}  // namespace attn
