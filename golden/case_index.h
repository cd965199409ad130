// Lines of index.jsonl and relations.jsonl.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "attn/case_file.h"
#include "core/strict_json.h"

namespace attn::golden {

// Calls `take` with the value of every line of a JSONL text; errors name `where` and the line.
void for_each_line(std::string_view text, const std::string& where,
                   const std::function<void(const JsonNode& line)>& take);

// The fields that running and comparing need. Keys may be added to rows of case folders, so unknown
// ones are not errors here.
CaseIndexRow parse_index_row(const JsonNode& line);

// Throws Error for a row that names none of `ids`.
CaseRelation parse_relation(const JsonNode& line, const std::set<std::string>& ids);

// 64 lower-case hex digits.
bool is_sha256(std::string_view text);

// The name of a file in a folder itself, not a path.
bool is_plain_file_name(std::string_view name);

}  // namespace attn::golden
