// JSON read so that nothing is guessed: a duplicate or unknown key, bytes after the value, invalid
// UTF-8, nesting beyond kMaxJsonDepth and a value of another type are Errors that name the path.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attn {

inline constexpr int kMaxJsonDepth = 16;
inline constexpr std::int64_t kMaxJsonInteger = std::int64_t{1} << 53;

// `text` in quotes for a message: control bytes and bytes beyond ASCII escaped, long texts cut.
std::string in_quotes(std::string_view text);

// A value in a document, with its path ("case.attrs.scale"). Must not outlive the document.
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, std::string path);

  const std::string& path() const { return path_; }

  // Objects. at() throws when the key is missing; find() is empty then. members() come sorted.
  void expect_object() const;
  void expect_only(std::span<const std::string_view> known_keys) const;
  void expect_only(std::initializer_list<std::string_view> known_keys) const {
    expect_only(std::span(known_keys.begin(), known_keys.size()));
  }
  bool has(std::string_view key) const;
  JsonNode at(std::string_view key) const;
  std::vector<std::pair<std::string, JsonNode>> members() const;

  // Arrays.
  std::vector<JsonNode> elements() const;

  // For values that may be of several types.
  bool is_null() const;
  bool is_string() const;
  bool is_object() const;
  bool is_array() const;
  bool is_boolean() const;

  // Scalars. An integer is written without fraction and exponent. A real is a string that
  // parse_hex_float takes; a number is what JSON calls so.
  std::string string() const;
  bool boolean() const;
  std::int64_t integer(std::int64_t min) const;  // [min, kMaxJsonInteger]
  double number() const;
  double real() const;
  // Index of the string among `names`.
  std::size_t choice(std::span<const std::string_view> names) const;
  std::size_t choice(std::initializer_list<std::string_view> names) const {
    return choice(std::span(names.begin(), names.size()));
  }

  // Throws "<path> is <value>, expected <expected>".
  [[noreturn]] void fail(std::string_view expected) const;

 private:
  const nlohmann::json* value_;
  std::string path_;
};

class JsonDocument {
 public:
  // `name` is the path of the root in messages.
  JsonDocument(std::string_view text, std::string name);
  JsonDocument(JsonDocument&&) noexcept;
  ~JsonDocument();

  JsonNode root() const;

 private:
  std::unique_ptr<const nlohmann::json> value_;
  std::string name_;
};

}  // namespace attn
