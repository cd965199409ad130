#include "cli/route_case.h"

#include <fmt/format.h>

#include "attn/case_file.h"
#include "attn/error.h"
#include "attn/problem_composite.h"
#include "cli/answer.h"
#include "cli/backends.h"
#include "cli/composite_name.h"

namespace attn::cli {

namespace {

Json routing_json(const ProblemComposite& composite, const ProblemRoute& route,
                  const AttentionProblem& problem) {
  Json forced_by = Json::array();
  for (const ForcingRow& row : route.route.forced_by) forced_by.push_back(row.row);
  Json requests = Json::array();
  for (const Route& alone : composite.request_routes(problem)) {
    requests.push_back(
        {{"request", requests.size()},
         {"variant", alone.child},
         {"reason", alone.forced_by.empty() ? alone.reason : alone.forced_by.front().reason}});
  }
  return {{"policy", composite.policy().name()},
          {"variant", route.route.child},
          {"path", route.path},
          {"child", route.child->name()},
          {"reason", route.route.reason},
          {"forced_by", forced_by},
          {"requests", requests}};
}

std::string routing_text(const ProblemRoute& route) {
  std::string text = fmt::format("{} answers (path {}): {}", route.child->name(),
                                 fmt::join(route.path, "."), route.route.reason);
  for (const ForcingRow& row : route.route.forced_by) {
    text += fmt::format("\nrequest {} forced it: {}", row.row, row.reason);
  }
  return text;
}

}  // namespace

CaseRouting route_problem(const std::string& backend, const AttentionProblem& problem) {
  require_known_backend(backend);
  if (!is_composite_name(backend)) throw Error(fmt::format("{} is no composite", backend));
  const NamedComposite& named = composite_named(backend);
  CaseRouting routing;
  routing.document["backend"] = backend;
  if (named.backend) {
    const ProblemRoute route = named.backend->route(problem);
    routing.document.update(routing_json(*named.backend, route, problem));
    routing.text = routing_text(route);
    routing.reasons = named.backend->supports(problem);
  } else {
    routing.reasons = {named.reason};
  }
  routing.document["reasons"] = routing.reasons;
  return routing;
}

int route_case(const GlobalOptions& options, const std::string& path, const std::string& backend) {
  const CaseFile file = CaseFile::read(path);
  const CaseRouting routing = route_problem(backend, problem_of(file, path));
  const int exit = routing.reasons.empty() ? kPassed : kNothingRan;
  if (options.json) {
    Json doc = document("route", options);
    doc["id"] = file.id();
    doc.update(routing.document);
    doc["exit"] = exit;
    write_json(doc);
  } else if (!routing.text.empty()) {
    write_line(fmt::format("{}: {}", file.id(), routing.text));
  }
  if (exit == kNothingRan) {
    write_error(fmt::format("{} skipped: {}", file.id(), fmt::join(routing.reasons, "; ")));
  }
  return exit;
}

}  // namespace attn::cli
