#include "cli/selector_listing.h"

#include <fmt/format.h>

#include "attn/backend_registry.h"
#include "selector/environment_json.h"
#include "selector/vllm_backends.h"

namespace attn::cli {
namespace {

// "cuda,rocm" as a list.
Json words_of(std::string_view text) {
  Json words = Json::array();
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    words.push_back(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return words;
}

}  // namespace

Json described_items() {
  const SelectorFacts facts = {Platform::kCuda, DeviceCapability{9, 0}, {}};
  const BackendRegistry registry(RegistryKind::kAttention);
  Json items = Json::array();
  for (const BackendRegistry::Member& member : registry.members()) {
    const BackendRow* row = find_backend_row(member.name);
    if (row == nullptr) continue;
    const DescribedBackend backend = row->describe(facts);
    items.push_back({{"name", member.name},
                     {"path", registry.path(member.name)},
                     {"platforms", words_of(row->platforms)},
                     {"mla", backend.mla},
                     {"sparse", backend.sparse}});
  }
  return items;
}

Json fact_items() {
  const SelectorEnvironment defaults;
  Json items = Json::array();
  for (const Fact& fact : facts()) {
    items.push_back({{"name", fact.name},
                     {"type", fact.type},
                     {"default", Json(fact.write(defaults))},
                     {"detected", nullptr},
                     {"platforms", words_of(fact.platforms)}});
  }
  items.push_back({{"name", "model"},
                   {"type", "object or null"},
                   {"default", nullptr},
                   {"detected", nullptr},
                   {"platforms", words_of("cuda,rocm")}});
  return items;
}

std::string described_line(const Json& item) {
  return fmt::format("{:<28}{}{}{}", item["name"].get<std::string>(),
                     item["path"].get<std::string>(), item["mla"].get<bool>() ? "  mla" : "",
                     item["sparse"].get<bool>() ? "  sparse" : "");
}

std::string fact_line(const Json& item) {
  return fmt::format("{:<30}{:<20}{}", item["name"].get<std::string>(),
                     item["type"].get<std::string>(), item["default"].dump());
}

}  // namespace attn::cli
