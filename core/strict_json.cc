#include "core/strict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "attn/error.h"
#include "core/contains.h"
#include "core/hex_float.h"

namespace attn {
namespace {

using nlohmann::json;

bool is_plain_key(std::string_view key) {
  return !key.empty() && key.size() <= 64 && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string member_path(const std::string& path, std::string_view key) {
  return is_plain_key(key) ? fmt::format("{}.{}", path, key)
                           : fmt::format("{}[{}]", path, in_quotes(key));
}

std::string printed(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  return value.dump();
}

// Watches the parser: the document model would keep one of two equal keys and any depth.
class Watcher {
 public:
  explicit Watcher(const std::string& name) : name_(name) {}

  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    using Event = json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) && depth >= kMaxJsonDepth) {
      throw Error(fmt::format("{} is nested deeper than {} levels", name_, kMaxJsonDepth));
    }
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key) note_key(parsed.get_ref<const std::string&>());
    return true;
  }

 private:
  void note_key(const std::string& key) {
    if (!keys_.back().insert(key).second) {
      throw Error(fmt::format("{} has the key {} twice in one object", name_, in_quotes(key)));
    }
  }

  const std::string& name_;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
};

json parse(std::string_view text, const std::string& name) {
  // The parser takes a NUL for the end of the text and skips a byte order mark.
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos) {
    throw Error(fmt::format("{} is not JSON: NUL at byte {}", name, nul));
  }
  if (text.starts_with('\xEF')) throw Error(fmt::format("{} is not JSON: at byte 0", name));
  Watcher watcher(name);
  try {
    return json::parse(text.begin(), text.end(), std::ref(watcher));
  } catch (const json::parse_error& error) {
    throw Error(fmt::format("{} is not JSON: at byte {}", name,
                            error.byte == 0 ? std::size_t{0} : error.byte - 1));
  } catch (const json::exception&) {
    throw Error(fmt::format("{} is not JSON: a number is out of range", name));
  }
}

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMaxShown = 64;
  std::string out = "\"";
  for (const char c : text.substr(0, kMaxShown)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c >= 0x20 && c < 0x7F) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  out += text.size() > kMaxShown ? "...\"" : "\"";
  return out;
}

JsonNode::JsonNode(const json& value, std::string path) : value_(&value), path_(std::move(path)) {}

void JsonNode::fail(std::string_view expected) const {
  throw Error(fmt::format("{} is {}, expected {}", path_, printed(*value_), expected));
}

void JsonNode::expect_object() const {
  if (!value_->is_object()) fail("an object");
}

void JsonNode::expect_only(std::span<const std::string_view> known_keys) const {
  expect_object();
  for (const auto& [key, value] : value_->items()) {
    if (!contains(known_keys, key)) {
      throw Error(fmt::format("{} has the unknown key {}", path_, in_quotes(key)));
    }
  }
}

bool JsonNode::has(std::string_view key) const {
  expect_object();
  return value_->contains(std::string(key));
}

JsonNode JsonNode::at(std::string_view key) const {
  expect_object();
  const auto found = value_->find(std::string(key));
  if (found == value_->end()) throw Error(fmt::format("{} is missing", member_path(path_, key)));
  return {*found, member_path(path_, key)};
}

std::vector<std::pair<std::string, JsonNode>> JsonNode::members() const {
  expect_object();
  std::vector<std::pair<std::string, JsonNode>> members;
  members.reserve(value_->size());
  for (const auto& [key, value] : value_->items()) {
    members.emplace_back(key, JsonNode(value, member_path(path_, key)));
  }
  return members;
}

std::vector<JsonNode> JsonNode::elements() const {
  if (!value_->is_array()) fail("an array");
  std::vector<JsonNode> elements;
  elements.reserve(value_->size());
  for (const json& value : *value_) {
    elements.emplace_back(value, fmt::format("{}[{}]", path_, elements.size()));
  }
  return elements;
}

bool JsonNode::is_null() const { return value_->is_null(); }
bool JsonNode::is_string() const { return value_->is_string(); }
bool JsonNode::is_object() const { return value_->is_object(); }
bool JsonNode::is_array() const { return value_->is_array(); }
bool JsonNode::is_boolean() const { return value_->is_boolean(); }

std::string JsonNode::string() const {
  if (!value_->is_string()) fail("a string");
  return value_->get<std::string>();
}

bool JsonNode::boolean() const {
  if (!value_->is_boolean()) fail("true or false");
  return value_->get<bool>();
}

std::int64_t JsonNode::integer(std::int64_t min) const {
  if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > kMaxJsonInteger) {
    fail("an integer <= 2^53");
  }
  if (!value_->is_number_integer() || value_->get<std::int64_t>() < min) {
    fail(fmt::format("an integer >= {}", min));
  }
  return value_->get<std::int64_t>();
}

double JsonNode::number() const {
  if (!value_->is_number()) fail("a number");
  return value_->get<double>();
}

double JsonNode::real() const {
  const std::optional<double> value =
      value_->is_string() ? parse_hex_float(value_->get_ref<const std::string&>()) : std::nullopt;
  if (!value) fail("a double as hex float string, e.g. \"0x1.8p+1\" or \"inf\"");
  return *value;
}

std::size_t JsonNode::choice(std::span<const std::string_view> names) const {
  if (value_->is_string()) {
    const auto found = std::find(names.begin(), names.end(), value_->get_ref<const std::string&>());
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  fail(fmt::format("{}{}", names.size() > 1 ? "one of " : "", fmt::join(names, ", ")));
}

JsonDocument::JsonDocument(std::string_view text, std::string name)
    : value_(std::make_unique<const json>(parse(text, name))), name_(std::move(name)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

JsonNode JsonDocument::root() const { return {*value_, name_}; }

}  // namespace attn
