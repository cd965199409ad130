// Which child of a composite answers a case, and which request forced it.
#pragma once

#include <string>
#include <vector>

#include "attn/problem.h"
#include "cli/document.h"

namespace attn::cli {

// How --backend routes a case.
struct CaseRouting {
  Json document;                     // the keys from "backend" to "reasons" of `route --case`
  std::string text;                  // the same in lines; empty when there is no route
  std::vector<std::string> reasons;  // why nobody answers it; empty = the child can
};

// Throws Error for a name that is no composite's. Without a child that this build lacks there is no
// route.
CaseRouting route_problem(const std::string& backend, const AttentionProblem& problem);

// Prints the document or the text; returns the exit code.
int route_case(const GlobalOptions& options, const std::string& path, const std::string& backend);

}  // namespace attn::cli
