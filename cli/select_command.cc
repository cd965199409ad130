// select: which backend vLLM would choose; replays of its decision tables.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "attn/error.h"
#include "cli/command.h"
#include "cli/document.h"
#include "cli/select_request.h"
#include "cli/select_table.h"
#include "selector/json_values.h"

namespace attn::cli {
namespace {

// What the automatic selection tried, or the requested backend alone.
nlohmann::json explained(const BackendSelector& selector, const SelectionRequest& request,
                         const Selection& selection) {
  if (!request.backend || !selection.candidates.empty()) return candidates_json(selection);
  std::vector<std::string> reasons;
  try {
    const BackendCheck& check = selector.check(*request.backend);
    reasons = reason_texts(check.validate(Requirements(request.config), selector.facts()), check,
                           selector.facts(), request.config);
  } catch (const VllmError& error) {
    reasons = {fmt::format("{}: {}", error.type(), error.what())};
  }
  return nlohmann::json::array({nlohmann::json::array({*request.backend, reasons})});
}

void write_candidates(const nlohmann::json& candidates) {
  for (const nlohmann::json& candidate : candidates) {
    const auto reasons = candidate[1].get<std::vector<std::string>>();
    write_line(
        fmt::format("  {}: {}", candidate[0].get<std::string>(),
                    reasons.empty() ? "valid" : fmt::format("{}", fmt::join(reasons, "; "))));
  }
}

void write_logs(const GlobalOptions& options, const Selection& selection) {
  for (const LogLine& line : selection.logs) {
    if (!options.quiet) write_stderr(fmt::format("{}: {}\n", name(line.level), line.text));
  }
}

std::string outcome_line(const Selection& selection) {
  if (selection.error) {
    return fmt::format("{}: {}", selection.error->type(), selection.error->what());
  }
  return fmt::format("{} {}", selection.backend.value_or("none"), selection.path);
}

Json question_json(const GlobalOptions& options, const Json& asked, const SelectQuestion& question,
                   const SelectorFacts& facts) {
  Json doc = document("select", options);
  doc["platform"] = name(facts.platform);
  doc["capability"] = nullptr;
  if (facts.capability) doc["capability"] = {facts.capability->major, facts.capability->minor};
  doc["requested"] = Json(or_null(question.request.backend));
  doc["num_heads"] = Json(or_null(question.request.num_heads));
  doc["config"] = Json(to_json_value(question.request.config));
  doc["env"] = asked["env"];
  for (const char* member : {"run", "backend_per_kind"}) {
    if (asked.contains(member)) doc[member] = asked[member];
  }
  return doc;
}

int select_one(const GlobalOptions& options, const SelectFlags& flags, bool explain) {
  const Json asked = select_document(flags);
  const SelectQuestion question = question_of(asked);
  const BackendSelector selector(question.facts, BackendRegistry(RegistryKind::kAttention));
  const Selection selection = selector.select(question.request);
  const int exit = selection.error ? kFailed : kPassed;
  if (!options.json) {
    write_logs(options, selection);
    write_line(outcome_line(selection));
    if (explain) write_candidates(explained(selector, question.request, selection));
    return exit;
  }
  Json doc = question_json(options, asked, question, selector.facts());
  doc["outcome"] = Json(outcome_json(selection));
  doc["logs"] = Json(logs_json(selection));
  const bool automatic =
      selector.facts().platform == Platform::kCuda && !question.request.backend && !selection.error;
  if (explain || automatic) {
    doc["candidates"] = Json(explained(selector, question.request, selection));
  }
  doc["exit"] = exit;
  write_json(doc);
  return exit;
}

int select_mamba_member(const GlobalOptions& options, const SelectFlags& flags,
                        const std::string& member) {
  const Json asked = select_document(flags);
  if (!asked["config"].empty() || asked.size() != 2) {
    throw Error("--mamba-type takes no other flag than --env batch_invariant");
  }
  const BackendRegistry registry(RegistryKind::kMamba);
  try {
    registry.at(member);
  } catch (const VllmError& error) {
    throw Error(error.what());
  }
  const MambaSelection selection = select_mamba(member, batch_invariant_of(asked));
  const int exit = selection.error ? kFailed : kPassed;
  if (!options.json) {
    write_line(selection.error
                   ? fmt::format("{}: {}", selection.error->type(), selection.error->what())
                   : fmt::format("{} {}", selection.get_name, selection.path));
    return exit;
  }
  Json doc = document("select", options);
  doc["mamba_type"] = member;
  doc["env"] = asked["env"];
  doc["outcome"] = {{"path", selection.path}, {"get_name", selection.get_name}};
  if (selection.error) doc["outcome"] = Json(to_json_value(*selection.error));
  doc["exit"] = exit;
  write_json(doc);
  return exit;
}

}  // namespace

Command add_select_command(CLI::App& parser, const GlobalOptions& options) {
  CLI::App* app =
      parser.add_subcommand("select", "The attention backend that vLLM chooses, and why")
          ->fallthrough();
  struct Flags {
    SelectFlags select;
    std::string table;
    std::string answers;
    std::string mamba_type;
    bool explain = false;
  };
  auto flags = std::make_shared<Flags>();
  add_select_flags(*app, flags->select);
  CLI::Option* table = app->add_option("--table", flags->table, "replay a decision table");
  CLI::Option* answers =
      app->add_option("--answers", flags->answers, "with --table: every row's answer")
          ->check(refuse_empty)
          ->needs(table);
  CLI::Option* mamba =
      app->add_option("--mamba-type", flags->mamba_type, "a member of the mamba registry instead");
  CLI::Option* explain = app->add_flag("--explain", flags->explain, "all candidates and reasons")
                             ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  for (CLI::Option* option : app->get_options()) {
    if (option != table && option != answers && option != app->get_help_ptr()) {
      table->excludes(option);
    }
  }
  mamba->excludes(explain);
  return {app, [&options, app, flags, table, mamba] {
            if (table->count() != 0) return select_table(options, flags->table, flags->answers);
            note_given(*app, flags->select);
            if (mamba->count() != 0) {
              return select_mamba_member(options, flags->select, flags->mamba_type);
            }
            return select_one(options, flags->select, flags->explain);
          }};
}

}  // namespace attn::cli
