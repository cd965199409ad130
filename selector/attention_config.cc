#include "attn/attention_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "attn/vllm_error.h"

namespace attn {
namespace {

std::string upper_case(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

std::string member(const std::string& text, const BackendRegistry& registry) {
  try {
    return registry.at(upper_case(text)).name;
  } catch (const VllmError& error) {
    throw VllmError("ValidationError", error.what());
  }
}

CacheGroupKind kind_of(const std::string& text) {
  if (const std::optional<CacheGroupKind> kind = cache_group_kind_from_name(text)) return *kind;
  std::vector<std::string_view> names;
  for (int index = 0; index < kNumCacheGroupKinds; ++index) {
    names.push_back(name(static_cast<CacheGroupKind>(index)));
  }
  std::sort(names.begin(), names.end());
  throw VllmError("ValidationError",
                  fmt::format("Unknown KV cache group kind '{}' in backend_per_kind. Valid kinds "
                              "are: {}.",
                              text, fmt::join(names, ", ")));
}

}  // namespace

AttentionConfig parse_attention_config(const std::optional<std::string>& backend,
                                       const std::map<std::string, std::string>& backend_per_kind,
                                       const BackendRegistry& registry) {
  AttentionConfig config;
  const std::string name = upper_case(backend.value_or("auto"));
  if (name == "CUTLASS_MSA" || name == "TRITON_MSA") {
    config.minimax_m3_msa_decode_backend = name == "CUTLASS_MSA" ? "cutlass" : "triton";
  } else if (name != "AUTO") {
    config.backend = member(name, registry);
  }
  for (const auto& [kind, value] : backend_per_kind) {
    config.backend_per_kind[kind_of(kind)] = member(value, registry);
  }
  return config;
}

}  // namespace attn
