// select: which backend vLLM would choose; replays of its decision tables.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "attn/environment.h"
#include "attn/error.h"
#include "cli/backends.h"
#include "cli/command.h"
#include "cli/document.h"
#include "cli/select_request.h"
#include "cli/select_table.h"
#include "cli/selector_listing.h"
#include "selector/json_values.h"

namespace attn::cli {
namespace {

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

// One selection, answered.
struct Answered {
  Json asked;
  SelectQuestion question;
  Selection selection;
  nlohmann::json explained;       // [[candidate, reasons], ...]
  bool shows_candidates = false;  // without being asked to explain
};

nlohmann::json alone(const std::string& backend, const std::vector<std::string>& reasons) {
  return nlohmann::json::array({nlohmann::json::array({backend, reasons})});
}

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
  return alone(*request.backend, reasons);
}

// Throws Error with vLLM's text.
void expect_member(const BackendRegistry& registry, const std::string& backend) {
  try {
    registry.at(backend);
  } catch (const VllmError& error) {
    throw Error(error.what());
  }
}

Answered answer_as_vllm(Json asked, std::vector<AddedBackend> added) {
  Answered a;
  a.asked = std::move(asked);
  a.question = question_of(a.asked);
  const BackendSelector selector(a.question.facts, BackendRegistry(RegistryKind::kAttention),
                                 std::move(added));
  for (const std::string& name : a.question.named) expect_member(selector.registry(), name);
  a.question.facts = selector.facts();
  const SelectionRequest& request = a.question.request;
  a.selection = selector.select(request);
  a.explained = explained(selector, request, a.selection);
  a.shows_candidates =
      selector.facts().platform == Platform::kCuda && !request.backend && !a.selection.error;
  return a;
}

Answered answer_own(const Json& asked) {
  Answered a;
  a.asked = on_this_machine(asked, detect_environment());
  a.question = question_of(a.asked);
  for (const std::string& name : a.question.named) require_known_backend(name);
  a.asked["platform"] = "own";
  const OwnSelector& selector = own_selector();
  const SelectionRequest& request = a.question.request;
  a.selection = selector.select(request);
  a.explained = request.backend
                    ? alone(*request.backend,
                            selector.reasons(*selector.find(*request.backend), request.config))
                    : candidates_json(a.selection);
  a.shows_candidates = !request.backend && !a.selection.error;
  return a;
}

Json answer_document(const GlobalOptions& options, const Answered& a, bool explain, int exit) {
  Json doc = document("select", options);
  add_machine(doc, a.question.facts);
  doc["platform"] = a.asked["platform"];
  doc["requested"] = Json(or_null(a.question.request.backend));
  doc["num_heads"] = Json(or_null(a.question.request.num_heads));
  doc["config"] = Json(to_json_value(a.question.request.config));
  doc["env"] = a.asked["env"];
  for (const char* member : {"run", "backend_per_kind"}) {
    if (a.asked.contains(member)) doc[member] = a.asked[member];
  }
  doc["outcome"] = Json(outcome_json(a.selection));
  doc["logs"] = Json(logs_json(a.selection));
  if (explain || a.shows_candidates) doc["candidates"] = Json(a.explained);
  doc["exit"] = exit;
  return doc;
}

int select_one(const GlobalOptions& options, const SelectFlags& flags, bool explain) {
  Json asked = select_document(flags);
  const bool own = asks_for_own(asked);
  if (own && !flags.backend_files.empty()) {
    throw Error("platform own selects among backends that run; a --backend-file only describes");
  }
  const Answered a =
      own ? answer_own(asked) : answer_as_vllm(std::move(asked), added_backends(flags));
  const int exit = a.selection.error ? kFailed : kPassed;
  if (options.json) {
    write_json(answer_document(options, a, explain, exit));
    return exit;
  }
  write_logs(options, a.selection);
  write_line(outcome_line(a.selection));
  if (explain) write_candidates(a.explained);
  return exit;
}

int select_mamba_member(const GlobalOptions& options, const SelectFlags& flags,
                        const std::string& member) {
  const Json asked = select_document(flags);
  if (!asked["config"].empty() || asked.size() != 2) {
    throw Error("--mamba-type takes no other flag than --env batch_invariant");
  }
  expect_member(BackendRegistry(RegistryKind::kMamba), member);
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

Command add_select_command(const Parser& parser, const GlobalOptions& options) {
  const Parser command =
      parser.command("select", "The attention backend that vLLM chooses, and why");
  struct Flags {
    SelectFlags select;
    std::string table;
    std::string answers;
    std::string mamba_type;
    bool explain = false;
  };
  auto flags = std::make_shared<Flags>();
  add_select_flags(command, flags->select);
  const Option mamba =
      command.text("--mamba-type", flags->mamba_type, "a member of the mamba registry instead");
  const Option explain = command.flag("--explain", flags->explain, "all candidates and reasons");
  mamba.excludes(explain);
  const std::vector<Option> of_one_selection = command.options();
  const Option table = command.text("--table", flags->table, "replay a decision table");
  for (const Option& option : of_one_selection) table.excludes(option);
  command.text("--answers", flags->answers, "with --table: every row's answer")
      .not_empty()
      .needs(table);
  return {command, [&options, command, flags, table, mamba] {
            if (table.given()) return select_table(options, flags->table, flags->answers);
            note_given(command, flags->select);
            if (mamba.given()) {
              return select_mamba_member(options, flags->select, flags->mamba_type);
            }
            return select_one(options, flags->select, flags->explain);
          }};
}

}  // namespace attn::cli
