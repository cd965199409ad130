// Replays decision tables that vLLM produced: answers every row and compares.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

inline constexpr std::string_view kTableFormat = "attn-selector-table/1";
inline constexpr std::size_t kMaxDifferences = 20;

struct ReplayedRow {
  std::int64_t line = 0;          // 1-based line of the file, or number of the row in a whole file
  std::optional<std::string> at;  // JSON pointer to the row in a whole file
  std::optional<bool> pass;       // none when the row has nothing to compare
  nlohmann::json answer;          // the compared members, in the table's own form
};

// The first difference of a row.
struct ReplayDifference {
  std::int64_t line = 0;
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

// `text` is a table of lines when `lines`, else a whole file; `on_row` sees every row in order.
// Throws Error for what is not a table of this format; then `on_row` may have seen rows.
ReplayReport replay_table(std::string_view text, bool lines,
                          const std::function<void(const ReplayedRow&)>& on_row);

// A file; its name says whether it is a table of lines (.jsonl) or a whole file (.json).
ReplayReport replay_table_file(const std::string& path,
                               const std::function<void(const ReplayedRow&)>& on_row);

}  // namespace attn
