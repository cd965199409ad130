#include "cli/compare_folder.h"

#include <fmt/format.h>

#include <optional>

#include "attn/error.h"
#include "cli/backends.h"
#include "cli/comparison.h"
#include "cli/progress.h"

namespace attn::cli {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  Verdict verdict = Verdict::kSkipped;
  std::string reason;
  std::string backend;  // that answered; empty for a stored answer
  Comparison comparison;
};

class FolderJudge {
 public:
  FolderJudge(const CaseFolder& folder, std::string actual_dir)
      : folder_(folder), actual_dir_(std::move(actual_dir)) {}

  // An answer that cannot be read or has the wrong shape is a wrong answer.
  Outcome judge(const CaseIndexRow& row) const {
    try {
      return judge_row(row);
    } catch (const Error& error) {
      return {Verdict::kFail, error.what(), "", {}};
    }
  }

  // Whether rows that a relation wants equal are the same bits in every answer.
  Outcome judge(const CaseRelation& relation) const {
    try {
      return judge_relation(relation);
    } catch (const Error& error) {
      return {Verdict::kFail, error.what(), "", {}};
    }
  }

 private:
  Outcome judge_row(const CaseIndexRow& row) const {
    const CaseFile file = CaseFile::read(folder_.path / row.file);
    if (file.result() == CaseResult::kInvalid) return skipped("the case is invalid");
    std::optional<AttentionProblem> checked;
    try {
      checked = file.problem();
    } catch (const Error& error) {
      if (file.result() == CaseResult::kAcceptable) return skipped(error.what());
      throw;
    }
    const AttentionProblem& problem = *checked;
    const Resolution reference = resolve_backend("REFERENCE", problem);
    if (!reference.reasons.empty()) {
      return skipped(fmt::format("REFERENCE: {}", fmt::join(reference.reasons, "; ")));
    }
    if (file.outputs().empty()) return skipped("the case asks for no output");
    return actual_dir_.empty() ? judge_stored(row, file, problem, *reference.backend)
                               : judge_actual(row, file, problem, *reference.backend);
  }

  Outcome judge_relation(const CaseRelation& relation) const {
    std::string first;
    for (const CaseRelation::Rows& rows : relation.rows) {
      const fs::path path = actual_path(rows.id);
      if (!fs::exists(path)) return skipped(fmt::format("no answer for {}", rows.id));
      const ResultFile answer = ResultFile::read(path);
      const std::string bytes = row_bytes(answer.tensor("out"), rows, path.string());
      if (&rows == &relation.rows.front()) first = bytes;
      if (bytes != first) {
        return {Verdict::kFail,
                fmt::format("{} differs from {}", rows.id, relation.rows[0].id),
                "",
                {}};
      }
    }
    return {Verdict::kPass, "", "", {}};
  }

  static Outcome skipped(std::string reason) {
    return {Verdict::kSkipped, std::move(reason), "", {}};
  }

  fs::path actual_path(const std::string& id) const {
    return fs::path(actual_dir_) / (id + ".safetensors");
  }

  static Outcome judged(Comparison comparison, std::string backend) {
    const Verdict verdict = comparison.verdict();
    std::string reason = comparison.reason();
    return {verdict, std::move(reason), std::move(backend), std::move(comparison)};
  }

  // The source's tolerance, plus the reference's own arithmetic.
  static Outcome judge_stored(const CaseIndexRow& row, const CaseFile& file,
                              const AttentionProblem& problem, const Backend& reference) {
    for (const auto& [tensor, description] : file.outputs()) {
      if (!file.stored_output(tensor).present()) return skipped("no stored answer");
    }
    return judged(compare_answer(
                      file, Answer(reference, file, problem),
                      [&](const std::string& tensor) { return file.stored_output(tensor); },
                      [&](const std::string& tensor, DType) {
                        return tolerance_of(row, tensor, DType::kF64);
                      },
                      row.file),
                  "");
  }

  Outcome judge_actual(const CaseIndexRow& row, const CaseFile& file,
                       const AttentionProblem& problem, const Backend& reference) const {
    const fs::path path = actual_path(row.id);
    if (!fs::exists(path)) return skipped("no answer");
    const ResultFile actual = ResultFile::read(path);
    return judged(compare_answer(
                      file, Answer(reference, file, problem),
                      [&](const std::string& tensor) { return actual.tensor(tensor); },
                      [&](const std::string& tensor, DType stored) {
                        return tolerance_of(row, tensor, stored);
                      },
                      path.string()),
                  actual.backend());
  }

  static Tolerance tolerance_of(const CaseIndexRow& row, const std::string& tensor, DType stored) {
    Tolerance t = arithmetic_allowance(tensor, stored, row.vmax);
    if (const auto it = row.tolerance.find(tensor); it != row.tolerance.end()) {
      t.atol += it->second.first;
      t.rtol += it->second.second;
    }
    return t;
  }

  static std::string row_bytes(const TensorView& out, const CaseRelation::Rows& rows,
                               const std::string& where) {
    if (!out.present() || rows.first_token < 0 || rows.count < 0 ||
        rows.first_token > out.shape[0] - rows.count) {
      throw Error(fmt::format("{}: rows [{}, {}) of out ({}) do not exist", where, rows.first_token,
                              rows.first_token + rows.count, to_string(out)));
    }
    const auto bytes = static_cast<std::size_t>(rows.count * out.stride_bytes[0]);
    return {reinterpret_cast<const char*>(out.at(rows.first_token)), bytes};
  }

  const CaseFolder& folder_;
  std::string actual_dir_;
};

void count(Counts& counts, Verdict verdict) {
  (verdict == Verdict::kPass   ? counts.passed
   : verdict == Verdict::kFail ? counts.failed
                               : counts.skipped) += 1;
}

Json outcome_json(const std::string& id, const Outcome& outcome) {
  Json line = {{"id", id}, {"backend", nullptr}, {"contract", nullptr}};
  if (!outcome.backend.empty()) line["backend"] = outcome.backend;
  line["verdict"] = nullptr;
  if (outcome.verdict == Verdict::kSkipped) line["verdict"] = name(outcome.verdict);
  line["gate"] = nullptr;
  line["reason"] = outcome.reason;
  line["tensors"] = outcome.comparison.tensors_json();
  line["plain"] = {{"verdict", name(outcome.verdict)}, {"ratio", real(outcome.comparison.ratio())}};
  return line;
}

void report(const GlobalOptions& options, const std::string& id, const Outcome& outcome) {
  if (options.json) {
    write_json(outcome_json(id, outcome));
  } else if (!options.quiet && outcome.verdict != Verdict::kPass) {
    write_line(fmt::format("{} {}: {}", id, name(outcome.verdict), outcome.reason));
  }
}

}  // namespace

int compare_folder(const GlobalOptions& options, const std::string& cases_dir,
                   const std::string& actual_dir) {
  const CaseFolder folder = CaseFolder::open(cases_dir);
  if (!actual_dir.empty() && !fs::is_directory(actual_dir)) {
    throw Error(fmt::format("{}: not a folder", actual_dir));
  }
  if (options.json) write_json(document("compare", options));
  const FolderJudge judge(folder, actual_dir);
  Progress progress("compare", static_cast<std::int64_t>(folder.rows.size()), options.quiet);
  Counts counts;
  for (const CaseIndexRow& row : folder.rows) {
    const Outcome outcome = judge.judge(row);
    count(counts, outcome.verdict);
    report(options, row.id, outcome);
    progress.step();
  }
  if (!actual_dir.empty()) {
    for (const CaseRelation& relation : folder.relations) {
      const Outcome outcome = judge.judge(relation);
      count(counts, outcome.verdict);
      report(options, fmt::format("relation {}", relation.about), outcome);
    }
  }
  if (options.json) {
    write_json(counts.summary());
  } else {
    write_line(counts.text());
  }
  return counts.exit();
}

}  // namespace attn::cli
