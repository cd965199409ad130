// golden make, verify, list, show.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "attn/error.h"
#include "attn/golden.h"
#include "cli/backends.h"
#include "cli/command.h"
#include "cli/contract_choice.h"
#include "cli/document.h"
#include "cli/pack_judge.h"
#include "cli/progress.h"
#include "cli/show_case.h"
#include "golden/exact/exact_answer.h"
#include "golden/pack_maker.h"

namespace attn::cli {
namespace {

Json golden_document(const GlobalOptions& options, const char* action) {
  Json doc = document("golden", options);
  doc["action"] = action;
  return doc;
}

int make(const GlobalOptions& options, const std::string& out, const std::string& pack) {
  const bool extended = pack == "extended";
  const questions::QuestionSet set =
      extended ? questions::extended_questions() : questions::core_questions();
  const auto answered =
      std::count_if(set.questions.begin(), set.questions.end(),
                    [](const questions::Question& q) { return q.result == CaseResult::kValid; });
  Progress progress("golden make", answered, options.quiet);
  std::mutex turn;
  const golden::MadePack made =
      golden::make_pack(out, extended ? golden::extended_pack_spec() : golden::core_pack_spec(),
                        set, [&](const AttentionProblem& problem, const Outputs& outputs) {
                          const int bits = exact::answer_exactly(problem, outputs);
                          const std::lock_guard<std::mutex> lock(turn);
                          progress.step();
                          return bits;
                        });
  const PackCounts& counts = made.manifest.counts;
  if (options.json) {
    Json doc = golden_document(options, "make");
    doc["pack"] = pack;
    doc["dir"] = out;
    doc["cases"] = counts.cases;
    doc["bytes"] = counts.bytes;
    doc["sha256sums"] = made.sha256sums;
    doc["exit"] = kPassed;
    write_json(doc);
  } else {
    write_line(fmt::format("{}: {} cases, {} bytes, SHA256SUMS {}", out, counts.cases, counts.bytes,
                           made.sha256sums));
  }
  return kPassed;
}

struct VerifyFlags {
  std::string dir;
  std::optional<std::string> backend;
  std::string contract;  // empty: what the backend declares
};

// What was found about a pack.
struct Findings {
  std::vector<PackDamage> damage;
  PackVerdict verdict;
};

int exit_of_findings(const Findings& findings, bool with_backend) {
  const Counts& counts = findings.verdict.counts;
  if (counts.failed != 0 || (counts.passed == 0 && counts.mistrusted != 0)) return kFailed;
  return with_backend && findings.verdict.judged == 0 ? kNothingRan : kPassed;
}

Findings find_out(const GlobalOptions& options, const VerifyFlags& flags) {
  const std::optional<PrecisionContract> contract = contract_of_flag(flags.contract);
  PackReport report = verify_pack(flags.dir);
  Findings findings;
  Counts& counts = findings.verdict.counts;
  if (report.pack && flags.backend) {
    Progress progress("golden verify", report.pack->manifest.counts.cases, options.quiet);
    findings.verdict = judge_pack(*report.pack, *flags.backend, contract, progress);
    return findings;
  }
  std::set<std::string> damaged_cases;
  for (const PackDamage& damage : report.damage) {
    if (damage.file.ends_with(".safetensors")) damaged_cases.insert(damage.file);
  }
  counts.failed = static_cast<std::int64_t>(report.damage.size());
  counts.passed = std::max<std::int64_t>(
      report.case_files - static_cast<std::int64_t>(damaged_cases.size()), 0);
  findings.damage = std::move(report.damage);
  return findings;
}

Json verify_document(const GlobalOptions& options, const VerifyFlags& flags,
                     const Findings& findings, int exit) {
  Json damage = Json::array();
  for (const PackDamage& one : findings.damage) {
    damage.push_back({{"file", one.file}, {"reason", one.reason}});
  }
  Json failures = Json::array();
  for (const PackRemark& remark : findings.verdict.remarks) {
    if (remark.verdict != Verdict::kFail) continue;
    failures.push_back({{"id", remark.id},
                        {"verdict", name(remark.verdict)},
                        {"gate", remark.gate ? Json(name(*remark.gate)) : Json(nullptr)},
                        {"reason", remark.reason}});
  }
  const Counts& counts = findings.verdict.counts;
  Json doc = golden_document(options, "verify");
  doc["dir"] = flags.dir;
  doc["backend"] = nullptr;
  if (flags.backend) doc["backend"] = *flags.backend;
  doc["damage"] = damage;
  doc["passed"] = counts.passed;
  doc["failed"] = counts.failed;
  doc["skipped"] = counts.skipped;
  if (counts.mistrusted != 0) doc["mistrusted"] = counts.mistrusted;
  doc["failures"] = failures;
  doc["exit"] = exit;
  return doc;
}

int verify(const GlobalOptions& options, const VerifyFlags& flags) {
  if (flags.backend) require_known_backend(*flags.backend);
  const Findings findings = find_out(options, flags);
  const int exit = exit_of_findings(findings, flags.backend.has_value());
  if (options.json) {
    write_json(verify_document(options, flags, findings, exit));
    return exit;
  }
  for (const PackDamage& one : findings.damage) {
    write_line(fmt::format("{}: {}", one.file, one.reason));
  }
  for (const PackRemark& remark : findings.verdict.remarks) {
    write_line(fmt::format("{} {}: {}", remark.id, name(remark.verdict), remark.reason));
  }
  write_line(findings.verdict.counts.text());
  return exit;
}

int list_pack(const GlobalOptions& options, const std::string& dir) {
  const Pack pack = open_pack(dir);
  Json cases = Json::array();
  for (const PackCase& one : pack.cases) {
    if (!options.json) {
      write_line(fmt::format("{} {} {} {}{}{}", one.row.id, name(one.row.op), one.row.variant,
                             name(one.row.result), one.flags.empty() ? "" : " ",
                             fmt::join(one.flags, ",")));
      continue;
    }
    cases.push_back({{"id", one.row.id},
                     {"op", name(one.row.op)},
                     {"variant", one.row.variant},
                     {"result", name(one.row.result)},
                     {"flags", one.flags},
                     {"bytes", one.bytes}});
  }
  if (options.json) {
    Json doc = golden_document(options, "list");
    doc["dir"] = dir;
    doc["cases"] = cases;
    doc["exit"] = kPassed;
    write_json(doc);
  }
  return kPassed;
}

int show_of_pack(const GlobalOptions& options, const std::string& dir, const std::string& id,
                 const ShowFlags& flags) {
  const Pack pack = open_pack(dir);
  for (const PackCase& one : pack.cases) {
    if (one.row.id == id) {
      return show_case(options, golden_document(options, "show"),
                       (pack.path / one.row.file).string(), flags);
    }
  }
  throw Error(fmt::format("{} has no case '{}'; `attn-oracle golden list` names them", dir, id));
}

Command add_make(const Parser& golden, const GlobalOptions& options) {
  const Parser command = golden.command("make", "Make a pack: the same bytes every time");
  auto out = std::make_shared<std::string>();
  auto pack = std::make_shared<std::string>("core");
  command.text("--out", *out, "folder of the pack, empty or not there yet").required().not_empty();
  command.text("--pack", *pack, "core, or extended").one_of({"core", "extended"});
  return {command, [&options, out, pack] { return make(options, *out, *pack); }};
}

Command add_verify(const Parser& golden, const GlobalOptions& options) {
  const Parser command = golden.command("verify", "Check a pack, and a backend against it");
  auto flags = std::make_shared<VerifyFlags>();
  command.text("dir", flags->dir, "the pack").required();
  const Option backend = command.text("--backend", flags->backend,
                                      "also run every case through it and judge the answers");
  command.text("--contract", flags->contract, "precision contract, a name or a JSON file")
      .not_empty()
      .needs(backend);
  return {command, [&options, flags] { return verify(options, *flags); }};
}

Command add_list(const Parser& golden, const GlobalOptions& options) {
  const Parser command = golden.command("list", "The cases of a pack");
  auto dir = std::make_shared<std::string>();
  command.text("dir", *dir, "the pack").required();
  return {command, [&options, dir] { return list_pack(options, *dir); }};
}

Command add_show(const Parser& golden, const GlobalOptions& options) {
  const Parser command = golden.command("show", "The mask of a case of a pack");
  auto dir = std::make_shared<std::string>();
  auto id = std::make_shared<std::string>();
  command.text("dir", *dir, "the pack").required();
  command.text("id", *id, "the case").required();
  const std::shared_ptr<ShowFlags> flags = add_show_flags(command);
  return {command, [&options, dir, id, flags] { return show_of_pack(options, *dir, *id, *flags); }};
}

}  // namespace

Command add_golden_command(const Parser& parser, const GlobalOptions& options) {
  const Parser command = parser.command("golden", "Packs of cases with exact expected values");
  command.require_command();
  const std::vector<Command> actions = {add_make(command, options), add_verify(command, options),
                                        add_list(command, options), add_show(command, options)};
  return {command, [actions] {
            const auto chosen =
                std::find_if(actions.begin(), actions.end(),
                             [](const Command& one) { return one.parser.chosen(); });
            return chosen->run();
          }};
}

}  // namespace attn::cli
