// Makes packs: answers questions and writes the folder.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "attn/golden.h"
#include "attn/output.h"
#include "golden/questions/question.h"

namespace attn::golden {

struct PackSpec {
  std::string name;
  std::string version;
  std::string tier;  // core, extended: what its size may be
  std::string title;
  std::vector<WithdrawnCase> withdrawn;
};

// The pack of this version that is kept with the sources.
PackSpec core_pack_spec();

// The one that is made on demand.
PackSpec extended_pack_spec();

// Fills every output and conditioning sum exactly; the bits it was checked with, 0 when nothing had
// to be rounded. Called from many threads at once.
using ExactAnswer = std::function<int(const AttentionProblem& problem, const Outputs& outputs)>;

struct MadePack {
  PackManifest manifest;
  std::string sha256sums;  // digest of SHA256SUMS
};

// Writes the pack to `target`, which appears complete or not at all. The bytes are a function of
// `spec`, `set` and the answers. Throws Error, with nothing left behind, when a question has no
// answer, a flag or ruling has no note, an attribute is not exact in binary32, the tier's limits
// are exceeded, or what was written does not verify; and when `target` exists and is not empty.
MadePack make_pack(const std::filesystem::path& target, const PackSpec& spec,
                   const questions::QuestionSet& set, const ExactAnswer& answer);

}  // namespace attn::golden
