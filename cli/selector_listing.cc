#include "cli/selector_listing.h"

#include <fmt/core.h>

#include <algorithm>

#include "attn/backend_registry.h"
#include "attn/environment.h"
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

bool is_detected(std::string_view fact) {
  return std::find(std::begin(kDetectedFacts), std::end(kDetectedFacts), fact) !=
         std::end(kDetectedFacts);
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

Json fact_items(const SelectorFacts& detected) {
  const SelectorEnvironment defaults;
  Json items = Json::array();
  for (const Fact& fact : facts()) {
    items.push_back({{"name", fact.name},
                     {"type", fact.type},
                     {"default", Json(fact.write(defaults))},
                     {"detected", is_detected(fact.name) ? Json(fact.write(detected.environment))
                                                         : Json(nullptr)},
                     {"platforms", words_of(fact.platforms)},
                     {"meaning", fact.meaning}});
  }
  items.push_back({{"name", "model"},
                   {"type", "object or null"},
                   {"default", nullptr},
                   {"detected", nullptr},
                   {"platforms", words_of("cuda,rocm")},
                   {"meaning", "the model; its fields as model.FIELD"}});
  return items;
}

void add_machine(Json& document, const SelectorFacts& facts) {
  document["platform"] = name(facts.platform);
  document["capability"] = nullptr;
  if (facts.capability) {
    document["capability"] = {facts.capability->major, facts.capability->minor};
  }
}

std::string machine_line(const SelectorFacts& facts) {
  if (!facts.capability) return fmt::format("platform {}", name(facts.platform));
  return fmt::format("platform {}, capability {}.{}", name(facts.platform), facts.capability->major,
                     facts.capability->minor);
}

std::string described_line(const Json& item) {
  return fmt::format("{:<28}{}{}{}", item["name"].get<std::string>(),
                     item["path"].get<std::string>(), item["mla"].get<bool>() ? "  mla" : "",
                     item["sparse"].get<bool>() ? "  sparse" : "");
}

std::string fact_line(const Json& item) {
  std::string line = fmt::format("{:<28} {:<18} {:<12} {}", item["name"].get<std::string>(),
                                 item["type"].get<std::string>(), item["default"].dump(),
                                 item["meaning"].get<std::string>());
  if (!item["detected"].is_null()) line += fmt::format("  here {}", item["detected"].dump());
  return line;
}

}  // namespace attn::cli
