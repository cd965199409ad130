// The kinds of decision tables: how each makes answers of rows.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "core/strict_json.h"
#include "core/table_replay.h"

namespace attn {

// The kind of a table of lines that a header names. Throws Error for one that is not known.
LineKind line_kind(const JsonNode& header);

// One row of a table that is a whole file.
struct WholeRow {
  std::string at;           // JSON pointer to the row
  nlohmann::json expected;  // its compared members
  nlohmann::json answer;    // ours
};
using RowSink = std::function<void(WholeRow row)>;

// `root` is the file, `table` the member that holds the rows; `raw` is the same member as it is.
void answer_registry(const JsonNode& table, const nlohmann::json& raw, const RowSink& sink);
void answer_priorities(const JsonNode& table, const nlohmann::json& raw, const RowSink& sink);
void answer_capabilities(const JsonNode& root, const JsonNode& table, const nlohmann::json& raw,
                         const RowSink& sink);
void answer_kv_quant_mode(const JsonNode& table, const nlohmann::json& raw, const RowSink& sink);
void answer_cache_dtypes(const nlohmann::json& raw, const RowSink& sink);
void answer_attention_config(const JsonNode& table, const nlohmann::json& raw, const RowSink& sink);
void answer_mamba_select(const JsonNode& table, const nlohmann::json& raw, const RowSink& sink);

// Answers a whole table. Throws Error when no kind has this name.
void answer_whole_table(const std::string& kind, const JsonNode& root, const nlohmann::json& raw,
                        const RowSink& sink);

}  // namespace attn
