#include "cli/pack_judge.h"

#include <fmt/core.h>

#include <map>

#include "attn/error.h"
#include "cli/answer.h"
#include "cli/backends.h"
#include "cli/expected_answer.h"
#include "cli/judging.h"
#include "cli/relation.h"

namespace attn::cli {
namespace {

class PackJudge {
 public:
  PackJudge(const Pack& pack, const std::string& backend,
            const std::optional<PrecisionContract>& contract)
      : pack_(pack), backend_(backend), contract_(contract) {
    for (const CaseRelation& relation : pack.relations) {
      for (const CaseRelation::Rows& rows : relation.rows) related_[rows.id];
    }
  }

  PackVerdict judge(Progress& progress) {
    for (const PackCase& one : pack_.cases) {
      try {
        judge_case(one);
      } catch (const std::exception& error) {
        fail(one.row.id, error.what());
      }
      progress.step();
    }
    for (const CaseRelation& relation : pack_.relations) judge_related(relation);
    expect_every_case();
    return std::move(verdict_);
  }

 private:
  // `out` of an answer that a relation names; absent until it was answered.
  struct KeptOut {
    std::string bytes;
    TensorView view;
  };

  void note(const std::string& id, const Judgement& judgement) {
    if (judgement.verdict != Verdict::kFail && judgement.verdict != Verdict::kMistrusted) return;
    verdict_.remarks.push_back({id, judgement.verdict, judgement.gate, judgement.reason});
  }

  void fail(const std::string& id, std::string reason) {
    ++verdict_.counts.failed;
    note(id, unjudged(Verdict::kFail, std::move(reason)));
  }

  void judge_case(const PackCase& one) {
    const CaseFile file = CaseFile::read(pack_.path / one.row.file);
    if (file.result() == CaseResult::kInvalid) return judge_invalid(one, file);
    const AttentionProblem problem = file.problem();
    const Resolution resolution = resolve_backend(backend_, problem);
    if (!resolution.reasons.empty()) {
      ++verdict_.counts.skipped;
      return;
    }
    ++verdict_.judged;
    const Answer answer(*resolution.backend, file, problem);
    keep_out(one.row.id, answer.tensor("out"));
    const Judgement judgement = judge_outputs(
        problem, stored_answer(file, problem),
        [&](const std::string& tensor) { return answer.tensor(tensor); },
        {contract_.value_or(resolution.backend->contract(problem))}, one.row.id,
        answer.canary_damage());
    verdict_.counts.add(judgement.verdict);
    note(one.row.id, judgement);
  }

  // Rejected before any backend is asked.
  void judge_invalid(const PackCase& one, const CaseFile& file) {
    try {
      file.problem();
    } catch (const Error&) {
      ++verdict_.counts.passed;
      return;
    }
    fail(one.row.id, "the case is invalid, but was not rejected");
  }

  void keep_out(const std::string& id, const TensorView& out) {
    const auto related = related_.find(id);
    if (related == related_.end() || !out.present()) return;
    KeptOut& kept = related->second;
    const auto bytes = static_cast<std::size_t>(out.num_units() * unit_bytes(out.dtype));
    kept.bytes.assign(static_cast<const char*>(out.data), bytes);
    kept.view = out;
    kept.view.data = kept.bytes.data();
  }

  void judge_related(const CaseRelation& relation) {
    const Judgement judgement =
        judge_relation(relation, [this](const std::string& id) { return related_.at(id).view; });
    verdict_.counts.add(judgement.verdict);
    note(fmt::format("relation {}", relation.about), judgement);
  }

  // Cases that silently did not run must not look like a pass.
  void expect_every_case() {
    const PackCounts& counts = pack_.manifest.counts;
    if (verdict_.counts.cases() != counts.cases + counts.relations) {
      fail("counts", fmt::format("{} cases and relations were judged, the manifest has {}",
                                 verdict_.counts.cases(), counts.cases + counts.relations));
    }
  }

  const Pack& pack_;
  const std::string& backend_;
  const std::optional<PrecisionContract>& contract_;
  std::map<std::string, KeptOut> related_;
  PackVerdict verdict_;
};

}  // namespace

PackVerdict judge_pack(const Pack& pack, const std::string& backend,
                       const std::optional<PrecisionContract>& contract, Progress& progress) {
  require_known_backend(backend);
  return PackJudge(pack, backend, contract).judge(progress);
}

}  // namespace attn::cli
