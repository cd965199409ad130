// Runs a backend over a golden pack.
#pragma once

#include <string>
#include <vector>

#include "attn/golden.h"
#include "attn/verdict.h"
#include "cli/document.h"
#include "cli/progress.h"

namespace attn::cli {

struct PackFailure {
  std::string id;  // of a case; "relation <about>"
  Verdict verdict = Verdict::kFail;
  std::string reason;
};

struct PackVerdict {
  Counts counts;            // cases and relations
  std::int64_t judged = 0;  // valid cases that passed or failed
  std::vector<PackFailure> failures;
};

// Answers every valid case and compares with the stored values, within the arithmetic of the type
// the backend stores; what a relation names must be the same bits. An invalid case passes when it
// is rejected. Cases that the backend does not support, and relations of such, are skipped. Throws
// Error for a name nobody knows.
PackVerdict judge_pack(const Pack& pack, const std::string& backend, Progress& progress);

}  // namespace attn::cli
