#include "cli/compare_folder.h"

#include <fmt/core.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "attn/error.h"
#include "cli/comparison.h"
#include "cli/contract_choice.h"
#include "cli/expected_answer.h"
#include "cli/judging.h"
#include "cli/progress.h"
#include "cli/relation.h"

namespace attn::cli {
namespace {

namespace fs = std::filesystem;

// What is said of one answer.
struct Outcome {
  Judgement judgement;
  std::string backend;  // that answered; empty for a stored answer
  std::optional<PrecisionContract> contract;
  std::optional<Comparison> plain;
};

Outcome unjudged_outcome(Verdict verdict, std::string reason) {
  Outcome outcome;
  outcome.judgement = unjudged(verdict, std::move(reason));
  return outcome;
}

Outcome skipped(std::string reason) {
  return unjudged_outcome(Verdict::kSkipped, std::move(reason));
}

// An answer that cannot be read or has the wrong shape is a wrong answer.
template <class Judge>
Outcome failing(Judge judge) {
  try {
    return judge();
  } catch (const Error& error) {
    return unjudged_outcome(Verdict::kFail, error.what());
  }
}

// A case and what is right.
struct JudgedCase {
  const CaseIndexRow& row;
  const CaseFile& file;
  const AttentionProblem& problem;
  const ExpectedAnswer& expected;
};

// One answer to a case, from wherever it comes.
struct Candidate {
  TensorOf tensor;
  std::optional<PrecisionContract> contract;  // none: only the plain verdict counts
  std::string backend;
  std::string where;
  bool stored = false;  // in the case: the source's tolerance is all that the plain verdict allows
};

class FolderJudge {
 public:
  FolderJudge(const CaseFolder& folder, const FolderComparison& asked)
      : folder_(folder), asked_(asked), contract_(contract_of_flag(asked.contract)) {}

  Outcome judge(const CaseIndexRow& row) const {
    return failing([&] { return judge_row(row); });
  }

  Outcome judge(const CaseRelation& relation) const {
    std::optional<ResultFile> answer;
    const OutOf out_of = [&](const std::string& id) -> TensorView {
      const fs::path path = actual_path(id);
      if (!fs::exists(path)) return {};
      answer = ResultFile::read(path);
      const TensorView out = answer->tensor("out");
      if (!out.present()) throw Error(fmt::format("{}: tensor out is missing", path.string()));
      return out;
    };
    return failing([&] {
      Outcome outcome;
      outcome.judgement = judge_relation(relation, out_of);
      return outcome;
    });
  }

 private:
  Outcome judge_row(const CaseIndexRow& row) const {
    const CaseFile file = CaseFile::read(folder_.path / row.file);
    if (file.result() == CaseResult::kInvalid) return skipped("the case is invalid");
    std::optional<AttentionProblem> problem;
    try {
      problem = file.problem();
    } catch (const Error& error) {
      if (file.result() == CaseResult::kAcceptable) return skipped(error.what());
      throw;
    }
    const std::string reason = why_unjudged(file, *problem);
    if (!reason.empty()) return skipped(reason);
    const RecomputedAnswer recomputed(file, *problem);
    const JudgedCase one{row, file, *problem, recomputed.expected()};
    return asked_.actual_dir.empty() ? judge_stored(one) : judge_actual(one);
  }

  Outcome judge_stored(const JudgedCase& one) const {
    for (const auto& [tensor, description] : one.file.outputs()) {
      if (!one.file.stored_output(tensor).present()) return skipped("no stored answer");
    }
    const TensorView out = one.file.stored_output("out");
    const TensorView first = one.file.stored_output(one.file.outputs().begin()->first);
    return judge_candidate(
        one, {.tensor = [&](const std::string& tensor) { return one.file.stored_output(tensor); },
              .contract = contract_of_source(one.row, (out.present() ? out : first).dtype),
              .backend = "",
              .where = one.row.file,
              .stored = true});
  }

  Outcome judge_actual(const JudgedCase& one) const {
    const fs::path path = actual_path(one.row.id);
    if (!fs::exists(path)) return skipped("no answer");
    const ResultFile actual = ResultFile::read(path);
    return judge_candidate(
        one, {.tensor = [&](const std::string& tensor) { return actual.tensor(tensor); },
              .contract = contract_of_answer(actual, one.problem),
              .backend = actual.backend(),
              .where = path.string()});
  }

  Outcome judge_candidate(const JudgedCase& one, const Candidate& candidate) const {
    Outcome outcome;
    outcome.backend = candidate.backend;
    outcome.plain = compare_answer(
        one.file, tensors_of(one.expected), candidate.tensor,
        [&](const std::string& tensor, DType stored) {
          return tolerance_of(one.row, tensor, candidate.stored ? DType::kF64 : stored);
        },
        candidate.where);
    outcome.contract = contract_ ? contract_ : candidate.contract;
    if (outcome.contract) {
      outcome.judgement =
          judge_outputs(one.problem, one.expected, candidate.tensor,
                        {*outcome.contract, asked_.strict, asked_.policies}, candidate.where);
    } else {
      outcome.judgement = unjudged(outcome.plain->verdict(), outcome.plain->reason());
      outcome.judgement.tensors = outcome.plain->tensors;
    }
    return outcome;
  }

  static Tolerance tolerance_of(const CaseIndexRow& row, const std::string& tensor, DType stored) {
    Tolerance t = arithmetic_allowance(tensor, stored, row.vmax);
    if (const auto it = row.tolerance.find(tensor); it != row.tolerance.end()) {
      t.atol += it->second.first;
      t.rtol += it->second.second;
    }
    return t;
  }

  fs::path actual_path(const std::string& id) const {
    return fs::path(asked_.actual_dir) / (id + ".safetensors");
  }

  const CaseFolder& folder_;
  const FolderComparison& asked_;
  std::optional<PrecisionContract> contract_;
};

Json outcome_json(const std::string& id, const Outcome& outcome) {
  Json line = {{"id", id}, {"backend", nullptr}, {"contract", nullptr}};
  if (!outcome.backend.empty()) line["backend"] = outcome.backend;
  if (outcome.contract) add_contract(line, *outcome.contract);
  add_judgement(line, outcome.judgement);
  line["plain"] = nullptr;
  if (outcome.plain) {
    line["plain"] = {{"verdict", name(outcome.plain->verdict())},
                     {"ratio", real(outcome.plain->ratio())}};
  }
  return line;
}

// Counts outcomes and says them.
class Report {
 public:
  Report(const GlobalOptions& options, bool strict) : options_(options), strict_(strict) {}

  void add(const std::string& id, const Outcome& outcome) {
    const Judgement& judgement = outcome.judgement;
    counts_.add(judgement.verdict, strict_);
    if (options_.json) {
      write_json(outcome_json(id, outcome));
    } else if (judgement.verdict == Verdict::kSkipped) {
      skipped_.add(id, judgement.reason);
    } else if (!options_.quiet && judgement.verdict != Verdict::kPass) {
      write_line(fmt::format("{} {}: {}", id, name(judgement.verdict), judgement.reason));
    }
  }

  // Returns the exit code.
  int finish() const {
    if (options_.json) {
      write_json(counts_.summary());
    } else {
      if (!options_.quiet) skipped_.write();
      write_line(counts_.text());
    }
    return counts_.exit();
  }

 private:
  const GlobalOptions& options_;
  bool strict_;
  Counts counts_;
  SkippedCases skipped_;
};

}  // namespace

int compare_folder(const GlobalOptions& options, const FolderComparison& asked) {
  const CaseFolder folder = CaseFolder::open(asked.cases_dir);
  if (!asked.actual_dir.empty() && !fs::is_directory(asked.actual_dir)) {
    throw Error(fmt::format("{}: not a folder", asked.actual_dir));
  }
  const FolderJudge judge(folder, asked);
  if (options.json) write_json(document("compare", options));
  Progress progress("compare", static_cast<std::int64_t>(folder.rows.size()), options.quiet);
  Report report(options, asked.strict);
  for (const CaseIndexRow& row : folder.rows) {
    report.add(row.id, judge.judge(row));
    progress.step();
  }
  if (!asked.actual_dir.empty()) {
    for (const CaseRelation& relation : folder.relations) {
      report.add(fmt::format("relation {}", relation.about), judge.judge(relation));
    }
  }
  return report.finish();
}

}  // namespace attn::cli
