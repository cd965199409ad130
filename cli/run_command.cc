#include <fmt/format.h>

#include <memory>
#include <new>
#include <optional>
#include <string>

#include "attn/case_file.h"
#include "attn/error.h"
#include "cli/answer.h"
#include "cli/backends.h"
#include "cli/command.h"
#include "cli/contract_choice.h"
#include "cli/document.h"
#include "cli/expected_answer.h"
#include "cli/judging.h"
#include "cli/output_path.h"
#include "cli/progress.h"

namespace attn::cli {
namespace {

struct RunFlags {
  std::string case_path;
  std::string cases_dir;
  std::string backend;
  std::string out;
  bool conditioning = false;
  bool judge = false;
  std::string contract;  // empty: what the backend declares
};

// What became of one case.
struct CaseRun {
  int exit = kPassed;
  Resolution resolution;
  std::unique_ptr<Answer> answer;  // of a backend that supports the case
  std::optional<Judgement> judgement;
  PrecisionContract contract;  // of the answer
};

// Runs nothing when the answer is to be judged and cannot be.
CaseRun run_case(const CaseFile& file, const AttentionProblem& problem, const RunFlags& flags) {
  CaseRun result;
  result.resolution = resolve_backend(flags.backend, problem, flags.conditioning);
  std::vector<std::string>& reasons = result.resolution.reasons;
  if (flags.judge) {
    const std::string reason = why_unjudged(file, problem);
    if (!reason.empty()) reasons.push_back(fmt::format("cannot be judged: {}", reason));
  }
  if (!reasons.empty()) {
    result.exit = kNothingRan;
    return result;
  }
  result.answer =
      std::make_unique<Answer>(*result.resolution.backend, file, problem, flags.conditioning);
  result.contract = result.resolution.backend->contract(problem);
  return result;
}

// Judges the answer as `compare` judges a file.
void judge(CaseRun& run, const CaseFile& file, const AttentionProblem& problem,
           const std::string& where, bool policies) {
  const RecomputedAnswer recomputed(file, problem);
  Judgement judgement = judge_outputs(
      problem, recomputed.expected(),
      [&](const std::string& tensor) { return run.answer->tensor(tensor); },
      {run.contract, false, policies}, where, run.answer->canary_damage());
  run.exit = exit_of(judgement, false);
  run.judgement = std::move(judgement);
}

// Writes Y when there is an answer. Throws Error when it cannot be written.
void write_answer(const CaseRun& run, const std::filesystem::path& out) {
  if (!run.answer) return;
  write_result(out, run.resolution.name, run.answer->exec(), run.answer->tensors());
}

Json run_document(const GlobalOptions& options, const RunFlags& flags, const CaseFile& file,
                  const CaseRun& run) {
  Json doc = document("run", options);
  doc["id"] = file.id();
  doc["op"] = name(file.op());
  doc["asked"] = flags.backend;
  doc["backend"] = run.resolution.name;
  if (run.answer) {
    add_contract(doc, run.contract);
    if (!run.resolution.isas.empty()) doc["isa"] = run.resolution.isas.back();
    doc["exec"] = Json::parse(to_json(run.answer->exec()));
  }
  doc["reasons"] = run.resolution.reasons;
  if (run.answer) {
    doc["out"] = flags.out;
    Json outputs = Json::object();
    for (const NamedTensor& tensor : run.answer->tensors()) {
      outputs[tensor.name] = describe(tensor.view);
    }
    doc["outputs"] = outputs;
    doc["seconds"] = run.answer->seconds();
  }
  if (run.judgement) add_judgement(doc, *run.judgement);
  doc["exit"] = run.exit;
  return doc;
}

int run_one(const GlobalOptions& options, const RunFlags& flags) {
  require_known_backend(flags.backend);
  expect_other_place(flags.case_path, flags.out);
  const std::optional<PrecisionContract> contract = contract_of_flag(flags.contract);
  const CaseFile file = CaseFile::read(flags.case_path);
  const AttentionProblem problem = problem_of(file, flags.case_path);
  CaseRun run = run_case(file, problem, flags);
  if (contract) run.contract = *contract;
  if (run.answer && flags.judge) judge(run, file, problem, flags.case_path, options.json);
  write_answer(run, flags.out);
  if (options.json) write_json(run_document(options, flags, file, run));
  if (run.exit == kNothingRan) {
    write_error(fmt::format("{} skipped: {}", file.id(), fmt::join(run.resolution.reasons, "; ")));
  } else if (!options.json) {
    if (!options.quiet) {
      write_line(fmt::format("{} answered by {}: {}", file.id(), run.resolution.name, flags.out));
    }
    if (run.judgement) write_line(text_of(file.id(), run.contract, *run.judgement));
  }
  return run.exit;
}

bool as_expected(CaseResult result, int exit) {
  switch (result) {
    case CaseResult::kValid:
      return exit == kPassed;
    case CaseResult::kInvalid:
      return exit == kBadInput;
    case CaseResult::kAcceptable:
      return exit == kPassed || exit == kBadInput;
  }
  return false;
}

// An error of the case (2) or of the backend (1) is its answer; one of writing Y ends the run. A
// case that is not answered leaves no Y, also none of an earlier run.
Json run_row(const CaseFolder& folder, const CaseIndexRow& row, const RunFlags& flags) {
  Json line = {{"id", row.id}};
  const std::filesystem::path out = std::filesystem::path(flags.out) / (row.id + ".safetensors");
  const auto finish = [&](int exit, const std::string& backend, const Json& reasons) {
    std::error_code absent;
    if (exit != kPassed) std::filesystem::remove(out, absent);
    line["exit"] = exit;
    line["backend"] = backend;
    line["reasons"] = reasons;
    return line;
  };
  std::optional<CaseFile> file;
  std::optional<AttentionProblem> problem;
  try {
    file = CaseFile::read(folder.path / row.file);
    problem = file->problem();
  } catch (const Error& error) {
    return finish(kBadInput, flags.backend, Json::array({error.what()}));
  }
  CaseRun run;
  try {
    run = run_case(*file, *problem, flags);
  } catch (const std::bad_alloc&) {
    return finish(kFailed, flags.backend, Json::array({"out of memory"}));
  } catch (const std::exception& error) {
    return finish(kFailed, flags.backend, Json::array({error.what()}));
  }
  write_answer(run, out);
  return finish(run.exit, run.resolution.name, run.resolution.reasons);
}

void make_folder(const std::string& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (failure || !std::filesystem::is_directory(path)) {
    throw Error(fmt::format("{}: cannot be made a folder: {}", path,
                            failure ? failure.message() : "it is a file"));
  }
}

int run_folder(const GlobalOptions& options, const RunFlags& flags) {
  require_known_backend(flags.backend);
  const CaseFolder folder = CaseFolder::open(flags.cases_dir);
  make_folder(flags.out);
  expect_other_place(flags.cases_dir, flags.out);
  // The index comes last: while there is none, the answers are not complete.
  const std::filesystem::path index_path = std::filesystem::path(flags.out) / "index.jsonl";
  std::error_code absent;
  std::filesystem::remove(index_path, absent);
  if (options.json) write_json(document("run", options));
  Progress progress("run", static_cast<std::int64_t>(folder.rows.size()), options.quiet);
  Counts counts;
  SkippedCases skipped;
  std::string index;
  for (const CaseIndexRow& row : folder.rows) {
    const Json line = run_row(folder, row, flags);
    const int exit = line["exit"].get<int>();
    const bool passed = as_expected(row.result, exit);
    (passed ? counts.passed : exit == kNothingRan ? counts.skipped : counts.failed) += 1;
    index += to_text(line) + "\n";
    if (options.json) {
      write_json(line);
    } else if (!options.quiet && !passed) {
      const std::string reasons =
          fmt::format("{}", fmt::join(line["reasons"].get<std::vector<std::string>>(), "; "));
      if (exit == kNothingRan) {
        skipped.add(row.id, reasons);
      } else {
        write_line(fmt::format("{} failed: {}", row.id, reasons));
      }
    }
    progress.step();
  }
  write_file_atomically(index_path, std::as_bytes(std::span(index)));
  if (options.json) {
    write_json(counts.summary());
  } else {
    skipped.write();
    write_line(counts.text());
  }
  return counts.exit();
}

}  // namespace

Command add_run_command(const Parser& parser, const GlobalOptions& options) {
  const Parser command =
      parser.command("run", "Answer a case, or every case of a folder, with one backend");
  auto flags = std::make_shared<RunFlags>();
  const Option one = command.text("--case", flags->case_path, "case file");
  const Option folder = command.text("--cases", flags->cases_dir, "folder with an index.jsonl");
  one.excludes(folder);
  command.text("--backend", flags->backend, "REFERENCE, CPU, auto, ... (see list backends)")
      .required();
  command.flag("--conditioning", flags->conditioning, "also store the conditioning sums");
  command.flag("--judge", flags->judge, "also judge the answer against REFERENCE; with --case")
      .excludes(folder);
  command
      .text("--contract", flags->contract, "of --judge: a name (see list contracts) or a JSON file")
      .not_empty();
  command.text("--out", flags->out, "result file, or folder for results").required();
  return {command, [&options, flags, one, folder] {
            if (!one.given() && !folder.given()) {
              throw Error("run needs --case FILE or --cases DIR");
            }
            if (!flags->contract.empty() && !flags->judge) throw Error("--contract needs --judge");
            return one.given() ? run_one(options, *flags) : run_folder(options, *flags);
          }};
}

}  // namespace attn::cli
