#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "attn/error.h"
#include "cli/answer.h"
#include "cli/backends.h"
#include "cli/command.h"
#include "cli/compare_folder.h"
#include "cli/comparison.h"

namespace attn::cli {
namespace {

struct CompareFlags {
  std::string case_path;
  std::string actual;
  std::string cases_dir;
  std::optional<double> atol;
  std::optional<double> rtol;
};

double checked_tolerance(const char* flag, std::optional<double> value) {
  if (!value) return 0.0;
  if (!std::isfinite(*value) || *value < 0.0) {
    throw Error(fmt::format("{} is {}, must be finite and not negative", flag, *value));
  }
  return *value;
}

int compare_one(const GlobalOptions& options, const CompareFlags& flags) {
  if (!flags.atol && !flags.rtol) {
    throw Error("this build has no certified bound: give --atol, --rtol or both");
  }
  const Tolerance tolerance{checked_tolerance("--atol", flags.atol),
                            checked_tolerance("--rtol", flags.rtol)};
  const CaseFile file = CaseFile::read(flags.case_path);
  const AttentionProblem problem = problem_of(file, flags.case_path);
  const ResultFile actual = ResultFile::read(flags.actual);
  Json doc = document("compare", options);
  doc["id"] = file.id();
  doc["actual"] = flags.actual;
  doc["backend"] = actual.backend();
  doc["contract"] = nullptr;
  const Resolution reference = resolve_backend("REFERENCE", problem);
  std::string skipped;
  if (!reference.reasons.empty()) {
    skipped = fmt::format("REFERENCE: {}", fmt::join(reference.reasons, "; "));
  } else if (file.outputs().empty()) {
    skipped = "the case asks for no output";
  }
  if (!skipped.empty()) {
    doc["verdict"] = name(Verdict::kSkipped);
    doc["reason"] = skipped;
    doc["exit"] = kNothingRan;
    if (options.json) write_json(doc);
    write_error(fmt::format("{} skipped: {}", file.id(), skipped));
    return kNothingRan;
  }
  const Comparison comparison = compare_answer(
      file, Answer(*reference.backend, file, problem),
      [&](const std::string& tensor) { return actual.tensor(tensor); },
      [&](const std::string&, DType) { return tolerance; }, flags.actual);
  const bool pass = comparison.verdict() == Verdict::kPass;
  doc["verdict"] = nullptr;
  doc["gate"] = nullptr;
  doc["reason"] = comparison.reason();
  doc["tensors"] = comparison.tensors_json();
  doc["strict"] = nullptr;
  doc["plain"] = {{"atol", tolerance.atol},
                  {"rtol", tolerance.rtol},
                  {"verdict", name(comparison.verdict())},
                  {"ratio", real(comparison.ratio())}};
  doc["exit"] = pass ? kPassed : kFailed;
  if (options.json) {
    write_json(doc);
  } else {
    write_line(fmt::format("{} {}: largest error {} of what is allowed{}{}", file.id(),
                           name(comparison.verdict()), comparison.ratio(), pass ? "" : "; ",
                           comparison.reason()));
  }
  return pass ? kPassed : kFailed;
}

}  // namespace

Command add_compare_command(CLI::App& parser, const GlobalOptions& options) {
  CLI::App* app =
      parser
          .add_subcommand("compare", "Judge an answer, or a folder of answers, against REFERENCE")
          ->fallthrough();
  auto flags = std::make_shared<CompareFlags>();
  CLI::Option* one = app->add_option("--case", flags->case_path, "case file");
  CLI::Option* folder =
      app->add_option("--cases", flags->cases_dir,
                      "folder of cases; without --actual the answers stored in it are judged");
  one->excludes(folder);
  CLI::Option* actual =
      app->add_option("--actual", flags->actual, "result file, or folder of results")
          ->check(refuse_empty);
  app->add_option("--atol", flags->atol, "|e-a| <= atol + rtol*|e|; with --case")
      ->check(CLI::Number)
      ->excludes(folder);
  app->add_option("--rtol", flags->rtol, "see --atol")->check(CLI::Number)->excludes(folder);
  return {app, [&options, flags, one, folder, actual] {
            if (folder->count() != 0)
              return compare_folder(options, flags->cases_dir, flags->actual);
            if (one->count() == 0) throw Error("compare needs --case FILE or --cases DIR");
            if (actual->count() == 0) throw Error("compare --case needs --actual FILE");
            return compare_one(options, *flags);
          }};
}

}  // namespace attn::cli
