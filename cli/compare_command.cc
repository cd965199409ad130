#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "attn/error.h"
#include "cli/answer.h"
#include "cli/command.h"
#include "cli/compare_folder.h"
#include "cli/comparison.h"
#include "cli/contract_choice.h"
#include "cli/expected_answer.h"
#include "cli/judging.h"

namespace attn::cli {
namespace {

struct CompareFlags {
  std::string case_path;
  std::string actual;
  std::string cases_dir;
  std::optional<double> atol;
  std::optional<double> rtol;
  std::string contract;
  bool strict = false;
};

double checked_tolerance(const char* flag, std::optional<double> value) {
  if (!value) return 0.0;
  if (!std::isfinite(*value) || *value < 0.0) {
    throw Error(fmt::format("{} is {}, must be finite and not negative", flag, *value));
  }
  return *value;
}

// Of the plain verdict; none when neither flag was given.
std::optional<Tolerance> plain_tolerance(const CompareFlags& flags) {
  if (!flags.atol && !flags.rtol) return std::nullopt;
  return Tolerance{checked_tolerance("--atol", flags.atol),
                   checked_tolerance("--rtol", flags.rtol)};
}

// The plain verdict beside the certified one.
Json plain_verdict(const Tolerance& tolerance, const CaseFile& file, const ExpectedAnswer& expected,
                   const TensorOf& actual, const std::string& where) {
  const Comparison comparison = compare_answer(
      file, tensors_of(expected), actual, [&](const std::string&, DType) { return tolerance; },
      where);
  return {{"atol", tolerance.atol},
          {"rtol", tolerance.rtol},
          {"verdict", name(comparison.verdict())},
          {"ratio", real(comparison.ratio())}};
}

int skip(const GlobalOptions& options, Json doc, const std::string& reason) {
  doc["contract"] = nullptr;
  add_judgement(doc, unjudged(Verdict::kSkipped, reason));
  doc["plain"] = nullptr;
  doc["exit"] = kNothingRan;
  if (options.json) write_json(doc);
  write_error(fmt::format("{} skipped: {}", doc["id"].get<std::string>(), reason));
  return kNothingRan;
}

int compare_one(const GlobalOptions& options, const CompareFlags& flags) {
  const std::optional<Tolerance> tolerance = plain_tolerance(flags);
  const std::optional<PrecisionContract> asked = contract_of_flag(flags.contract);
  const CaseFile file = CaseFile::read(flags.case_path);
  const AttentionProblem problem = problem_of(file, flags.case_path);
  const ResultFile actual = ResultFile::read(flags.actual);
  Json doc = document("compare", options);
  doc["id"] = file.id();
  doc["actual"] = flags.actual;
  doc["backend"] = actual.backend();
  const std::string reason = why_unjudged(file, problem);
  if (!reason.empty()) return skip(options, doc, reason);
  const RecomputedAnswer recomputed(file, problem);
  const ExpectedAnswer& expected = recomputed.expected();
  const PrecisionContract contract = asked ? *asked : contract_of_answer(actual, problem);
  const TensorOf tensor = [&](const std::string& name) { return actual.tensor(name); };
  const Judgement judgement = judge_outputs(problem, expected, tensor,
                                            {contract, flags.strict, options.json}, flags.actual);
  const int exit = exit_of(judgement, flags.strict);
  add_contract(doc, contract);
  add_judgement(doc, judgement);
  doc["plain"] = nullptr;
  if (tolerance) doc["plain"] = plain_verdict(*tolerance, file, expected, tensor, flags.actual);
  doc["exit"] = exit;
  if (options.json) {
    write_json(doc);
  } else {
    write_line(text_of(file.id(), contract, judgement));
  }
  return exit;
}

}  // namespace

Command add_compare_command(const Parser& parser, const GlobalOptions& options) {
  const Parser command =
      parser.command("compare", "Judge an answer, or a folder of answers, against REFERENCE");
  auto flags = std::make_shared<CompareFlags>();
  const Option one = command.text("--case", flags->case_path, "case file");
  const Option folder =
      command.text("--cases", flags->cases_dir,
                   "folder of cases; without --actual the answers stored in it are judged");
  one.excludes(folder);
  const Option actual =
      command.text("--actual", flags->actual, "result file, or folder of results").not_empty();
  command
      .text("--contract", flags->contract,
            "precision contract: a name (see list contracts) or a JSON file")
      .not_empty();
  command.flag("--strict", flags->strict, "also the probabilistic tier; mistrusted is a failure");
  command
      .number("--atol", flags->atol, "also a plain verdict: |e-a| <= atol + rtol*|e|; with --case")
      .excludes(folder);
  command.number("--rtol", flags->rtol, "see --atol").excludes(folder);
  return {command, [&options, flags, one, folder, actual] {
            if (folder.given())
              return compare_folder(options, {flags->cases_dir, flags->actual, flags->contract,
                                              flags->strict, options.json});
            if (!one.given()) throw Error("compare needs --case FILE or --cases DIR");
            if (!actual.given()) throw Error("compare --case needs --actual FILE");
            return compare_one(options, *flags);
          }};
}

}  // namespace attn::cli
