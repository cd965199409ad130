// attn-pack/1: a folder of cases with exact expected values, a manifest and digests of everything.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attn/case_file.h"

namespace attn {

// What a flag or ruling of the index means, for whoever fails a case that has it.
struct PackNote {
  std::string kind;         // addressing, capability, convention, empty, heads, ...
  std::string description;  // what goes wrong elsewhere
  std::string effect;       // what a wrong kernel shows
  std::vector<std::string> links;

  bool operator==(const PackNote&) const = default;
};

struct PackCounts {
  std::int64_t cases = 0;
  std::int64_t bytes = 0;  // of the case files
  std::int64_t relations = 0;
  std::map<std::string, std::int64_t> by_op, by_variant, by_result;

  bool operator==(const PackCounts&) const = default;
};

// A case whose expected value was wrong. Its id is never used again.
struct WithdrawnCase {
  std::string id;
  std::string since;  // version
  std::string reason;
  std::string superseded_by;  // id; empty = nothing took its place

  bool operator==(const WithdrawnCase&) const = default;
};

struct PackManifest {
  std::string name;
  std::string version;  // semantic
  std::string tier;     // core, extended
  std::string title;
  std::int64_t bits = 0;        // of the evaluation that made the expected values
  std::int64_t check_bits = 0;  // the most that any case was checked with
  PackCounts counts;
  std::map<std::string, PackNote> notes;
  std::vector<WithdrawnCase> withdrawn;

  bool operator==(const PackManifest&) const = default;
};

struct PackCase {
  CaseIndexRow row;
  std::vector<std::string> flags;
  std::vector<std::string> rulings;
  std::string where;       // how its inputs came about
  std::int64_t bytes = 0;  // of its file
};

struct Pack {
  std::filesystem::path path;
  PackManifest manifest;
  std::vector<PackCase> cases;  // by id
  std::vector<CaseRelation> relations;
};

struct PackDamage {
  std::string file;
  std::string reason;

  bool operator==(const PackDamage&) const = default;
};

struct PackReport {
  std::vector<PackDamage> damage;
  std::int64_t case_files = 0;  // that SHA256SUMS names
  std::optional<Pack> pack;     // when nothing is damaged
};

// Checks, in this order: names in the folder; digests; manifest; index and counts; each case
// against its tensors and its line of the index; notes; relations. What finds damage is the last
// step. No byte is interpreted before its digest was checked. Throws Error for what is no finished
// folder: a path that is none, a pack still being made.
PackReport verify_pack(const std::filesystem::path& folder);

// A verified pack; throws Error naming the first damage.
Pack open_pack(const std::filesystem::path& folder);

}  // namespace attn
