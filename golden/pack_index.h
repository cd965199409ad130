// Lines of a pack's index.jsonl and relations.jsonl: those of a case folder, with everything that
// a pack promises.
#pragma once

#include <string>
#include <vector>

#include "attn/golden.h"
#include "core/strict_json.h"

namespace attn::golden {

// The line of a case, with its "\n". `version` is that of the pack.
std::string to_line(const PackCase& one, const std::string& version);
std::string to_line(const CaseRelation& relation);

// Throws Error unless it is a line that to_line() could have written, up to the order of keys.
// `bytes` stays 0.
PackCase parse_pack_line(const JsonNode& line, const std::string& version);

}  // namespace attn::golden
