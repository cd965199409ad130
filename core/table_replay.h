// Replays tables of what vLLM answered: answers every row and compares. The machinery that all
// formats of tables share; a format brings its kinds of rows.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/strict_json.h"

namespace attn {

inline constexpr std::size_t kMaxDifferences = 20;

struct ReplayedRow {
  std::int64_t line = 0;          // 1-based line of the file, or number of the row in a whole file
  std::optional<std::string> at;  // JSON pointer to the row in a whole file
  std::optional<std::string> id;  // the row's own, in formats that have them
  std::optional<bool> pass;       // none when the row has nothing to compare
  nlohmann::json answer;          // the compared members, in the table's own form
};
using RowObserver = std::function<void(const ReplayedRow&)>;

// The first difference of a row.
struct ReplayDifference {
  std::int64_t line = 0;
  std::optional<std::string> id;
  std::string at;  // JSON pointer inside the row
  nlohmann::json expected;
  nlohmann::json actual;
};

struct ReplayReport {
  std::string table;
  std::string vllm_version;
  std::int64_t rows = 0;
  std::int64_t passed = 0;
  std::int64_t failed = 0;
  std::int64_t skipped = 0;
  std::vector<ReplayDifference> first;  // up to kMaxDifferences
};

// Compares rows and counts them. Both arguments must outlive it.
class ReplayRecorder {
 public:
  ReplayRecorder(ReplayReport& report, const RowObserver& on_row)
      : report_(report), on_row_(on_row) {}

  // `expected` holds the compared members that the row has. Values are compared deeply: the order
  // of a list counts, that of keys does not, an integer is not a boolean.
  void note(ReplayedRow row, const nlohmann::json& expected);

 private:
  ReplayReport& report_;
  const RowObserver& on_row_;
};

// A table of lines: a row in, its compared members out. Throws Error for a malformed row.
struct LineKind {
  std::vector<std::string> compared;
  std::function<nlohmann::json(const JsonNode& row)> answer;
};

struct LineFormat {
  std::string_view name;  // what the header's `format` must be
  bool has_ids = false;   // every row has a unique `id`
  // Errors are {"error": {"type", "text"}}. The text counts of ValueErrors and of AssertionErrors
  // that have one; of the others in this format's tables the type alone, at any depth.
  bool python_texts_are_free = false;
  // The kind that a header names. Throws Error for one that is not known.
  std::function<LineKind(const JsonNode& header)> kind;
};

// Line 1 is the header with `format`, `table`, `vllm_version` and `rows`, the number of the other
// lines, each of which is a row. Throws Error for what is not such a table; then `on_row` may have
// seen rows.
ReplayReport replay_lines(std::string_view text, const LineFormat& format,
                          const RowObserver& on_row);

// The members of `row` among `keys` that it has.
nlohmann::json members_of(const nlohmann::json& row, const std::vector<std::string>& keys);

// For formats that have whole files, too.
nlohmann::json strictly_parsed(std::string_view text, const std::string& name);
void expect_format(const JsonNode& header, std::string_view format);

}  // namespace attn
