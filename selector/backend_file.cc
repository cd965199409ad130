// A backend that is described in a file: the description of a backend, and where selection tries
// it.
#include <array>

#include "attn/selector.h"
#include "core/child_description.h"
#include "core/strict_json.h"
#include "core/table_values.h"
#include "selector/json_values.h"

namespace attn {
namespace {

constexpr std::array<std::string_view, 3> kOwnKeys = {"format", "priority", "platforms"};
// Far beyond any list of candidates.
constexpr int kLargestPriority = 1000;

std::optional<int> priority_from(const JsonNode& node) {
  const std::optional<int> priority = optional_int_from(node);
  if (priority && (*priority < 0 || *priority > kLargestPriority)) {
    node.fail("null or an integer in [0, 1000]");
  }
  return priority;
}

std::vector<Platform> platforms_from(const JsonNode& node) {
  std::vector<Platform> platforms;
  for (const JsonNode& element : node.elements()) platforms.push_back(platform_from(element));
  if (platforms.empty()) node.fail("one platform or more");
  return platforms;
}

}  // namespace

AddedBackend parse_backend_file(std::string_view text, const std::string& name) {
  const JsonDocument document(text, name);
  const JsonNode root = document.root();
  root.expect_object();
  root.at("format").choice({"attn-backend-file/1"});
  const ChildDescription child = child_description_from(root, kOwnKeys);
  AddedBackend added;
  added.name = child.name;
  added.path = child.module + "." + child.class_name;
  if (root.has("priority")) added.priority = priority_from(root.at("priority"));
  added.platforms = {Platform::kCuda, Platform::kRocm, Platform::kXpu, Platform::kCpu};
  if (root.has("platforms")) added.platforms = platforms_from(root.at("platforms"));
  added.describe = [child](const SelectorFacts& facts) {
    return described_on(child, facts.capability);
  };
  return added;
}

}  // namespace attn
