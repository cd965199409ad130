// Runs a backend over a golden pack.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn/golden.h"
#include "attn/judgement.h"
#include "cli/document.h"
#include "cli/progress.h"

namespace attn::cli {

// Of what failed or is mistrusted.
struct PackRemark {
  std::string id;  // of a case; "relation <about>"
  Verdict verdict = Verdict::kFail;
  std::optional<Gate> gate;
  std::string reason;
};

struct PackVerdict {
  Counts counts;            // cases and relations
  std::int64_t judged = 0;  // valid cases that passed or failed
  std::vector<PackRemark> remarks;
};

// Answers every valid case and judges the answer by the stored values and sums, under `contract` or
// the one the backend declares; what a relation names must be the same bits. An invalid case passes
// when it is rejected. Cases that the backend does not support, and relations of such, are skipped.
// Throws Error for a name nobody knows.
PackVerdict judge_pack(const Pack& pack, const std::string& backend,
                       const std::optional<PrecisionContract>& contract, Progress& progress);

}  // namespace attn::cli
