// manifest.json, as strictly as pack.schema.json says.
#pragma once

#include <string>

#include "attn/golden.h"
#include "core/strict_json.h"

namespace attn::golden {

// Throws Error, with the path, for everything the schema forbids.
PackManifest parse_manifest(const JsonNode& node);

// Indented, keys sorted.
std::string to_text(const PackManifest& manifest);

// What the cases and relations of a pack add up to.
PackCounts counts_of(const std::vector<PackCase>& cases, std::size_t relations);

}  // namespace attn::golden
