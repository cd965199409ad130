// The checks behind verify_pack(), whatever the folder is called.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "attn/golden.h"

namespace attn::golden {

// Files of a pack beside its cases and SHA256SUMS.
inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kIndexFile = "index.jsonl";
inline constexpr std::string_view kRelationsFile = "relations.jsonl";
inline constexpr std::string_view kLicenseFile = "LICENSE";
inline constexpr std::string_view kReadmeFile = "README.md";
inline constexpr std::string_view kCaseSuffix = ".safetensors";

// Throws Error when `folder` cannot be listed.
PackReport inspect_folder(const std::filesystem::path& folder);

// Throws Error unless the file holds the case that its line of the index says: the same id,
// operation, labels and outputs; valid with exact answers to everything, or invalid and without.
CaseFile expect_case_of(const PackCase& one, std::span<const std::byte> bytes);

// The rows of `out` that a relation names, as bytes. Throws Error when they do not exist.
std::span<const std::byte> rows_of_out(const CaseFile& file, const CaseRelation::Rows& rows);

}  // namespace attn::golden
