#include "cli/pack_judge.h"

#include <fmt/format.h>

#include <map>

#include "attn/error.h"
#include "cli/answer.h"
#include "cli/backends.h"
#include "cli/comparison.h"

namespace attn::cli {
namespace {

class PackJudge {
 public:
  PackJudge(const Pack& pack, const std::string& backend) : pack_(pack), backend_(backend) {
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
    for (const CaseRelation& relation : pack_.relations) judge_relation(relation);
    expect_every_case();
    return std::move(verdict_);
  }

 private:
  // `out` of an answer that a relation names.
  struct Rows {
    std::string bytes;
    std::size_t row_bytes = 0;
  };

  void fail(const std::string& id, std::string reason) {
    ++verdict_.counts.failed;
    verdict_.failures.push_back({id, Verdict::kFail, std::move(reason)});
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
    keep_rows(one.row.id, answer.tensor("out"));
    const Comparison comparison = compare_answer(
        file, [&](const std::string& tensor) { return file.stored_output(tensor); },
        [&](const std::string& tensor) { return answer.tensor(tensor); },
        [&](const std::string& tensor, DType stored) {
          return arithmetic_allowance(tensor, stored, one.row.vmax);
        },
        one.row.id);
    if (comparison.verdict() == Verdict::kPass) {
      ++verdict_.counts.passed;
    } else {
      fail(one.row.id, comparison.reason());
    }
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

  void keep_rows(const std::string& id, const TensorView& out) {
    const auto related = related_.find(id);
    if (related == related_.end() || !out.present()) return;
    const auto row_bytes = static_cast<std::size_t>(out.stride_bytes[0]);
    related->second = {
        {static_cast<const char*>(out.data), static_cast<std::size_t>(out.shape[0]) * row_bytes},
        row_bytes};
  }

  void judge_relation(const CaseRelation& relation) {
    std::string first;
    for (const CaseRelation::Rows& rows : relation.rows) {
      const Rows& kept = related_.at(rows.id);
      if (kept.row_bytes == 0) {
        ++verdict_.counts.skipped;
        return;
      }
      // The pack was verified: the rows exist.
      const std::string bytes =
          kept.bytes.substr(static_cast<std::size_t>(rows.first_token) * kept.row_bytes,
                            static_cast<std::size_t>(rows.count) * kept.row_bytes);
      if (&rows == &relation.rows.front()) first = bytes;
      if (bytes != first) {
        return fail(
            fmt::format("relation {}", relation.about),
            fmt::format("rows of {} differ from those of {}", rows.id, relation.rows[0].id));
      }
    }
    ++verdict_.counts.passed;
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
  std::map<std::string, Rows> related_;
  PackVerdict verdict_;
};

}  // namespace

PackVerdict judge_pack(const Pack& pack, const std::string& backend, Progress& progress) {
  require_known_backend(backend);
  return PackJudge(pack, backend).judge(progress);
}

}  // namespace attn::cli
