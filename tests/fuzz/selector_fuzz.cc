// libFuzzer target: any text is a decision table, a backend file or a request, or an attn::Error.
// The first byte says which. Seeds are tables, files and requests behind one byte each.
//
//   selector_fuzz -dict=tests/fuzz/selector.dict CORPUS
#include <cstdint>
#include <string_view>

#include "attn/error.h"
#include "attn/selector.h"
#include "selector/environment_json.h"
#include "selector/json_values.h"
#include "selector/replay.h"

namespace {

using namespace attn;

void ignore(const ReplayedRow&) {}

// Selects on every platform, requested and not.
void select_beside(const AddedBackend& added) {
  for (const Platform platform :
       {Platform::kCuda, Platform::kRocm, Platform::kXpu, Platform::kCpu}) {
    SelectorFacts facts{platform, std::nullopt, {}};
    if (platform == Platform::kCuda) facts.capability = DeviceCapability{9, 0};
    const BackendSelector selector(facts, BackendRegistry(RegistryKind::kAttention), {added});
    SelectionRequest request;
    request.config.head_size = 128;
    request.config.block_size = 16;
    selector.select(request);
    if (!selector.is_added(added.name)) continue;
    request.backend = added.name;
    selector.select(request);
  }
}

// A request as the command line reads it: {"config", "env", "run", "backend_per_kind"}.
void read_request(std::string_view text) {
  const JsonDocument document(text, "request");
  const JsonNode root = document.root();
  root.expect_only({"config", "env", "run", "backend_per_kind"});
  if (root.has("env")) {
    const SelectorEnvironment environment = EnvironmentReader().read(root.at("env"));
    for (const Fact& fact : facts()) fact.write(environment);
  }
  if (root.has("run")) run_config_from(root.at("run"), RunConfig{});
  if (root.has("backend_per_kind")) backend_per_kind_from(root.at("backend_per_kind"));
  if (!root.has("config")) return;
  const AttentionSelectorConfig config = selector_config_from(root.at("config"));
  if (selector_config_from_repr(to_string(config)) != config) __builtin_trap();
}

void read(unsigned char kind, std::string_view text) {
  switch (kind % 4) {
    case 0:
      replay_table(text, true, ignore);
      break;
    case 1:
      replay_table(text, false, ignore);
      break;
    case 2:
      select_beside(parse_backend_file(text, "file"));
      break;
    default:
      read_request(text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    read(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const attn::Error&) {
  }
  return 0;
}
