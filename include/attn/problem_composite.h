// A composite of backends that answer whole problems, as a backend of that kind.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attn/backend.h"
#include "attn/routing_policy.h"

namespace attn {

// Which child of a composite answers a problem.
struct ProblemRoute {
  std::vector<int> path;           // the child, then the child of the composite that this is, ...
  const Backend* child = nullptr;  // that answers in the end, under its own name
  Route route;                     // of the outermost policy; rows are requests
};

// Answers attention with the child that the policy selects for batch_of(problem), and all other
// operations with child 0. What it supports, promises and needs for a problem, and the type of out
// and lse, are those of that child; a child without image masks gets the problem without ranges
// that add no key to any row. capabilities() are what some child can do; they promise nothing for a
// problem. A plan is for the child that it was prepared for: run throws Error when a problem goes
// to another one.
class ProblemComposite : public Backend {
 public:
  virtual const RoutingPolicyClass& policy() const = 0;

  // Throws Error, naming the value, when the policy names a child that there is not.
  virtual ProblemRoute route(const AttentionProblem& problem) const = 0;
  // What the outermost policy says to each request alone; empty for operations beside attention.
  virtual std::vector<Route> request_routes(const AttentionProblem& problem) const = 0;
};

// Named "COMPOSITE(A,B)", with ",policy=P" when that is not mm_prefix. Children may be composites.
// Throws Error for less than two children, a null one, one child twice (by its name), a child that
// does not answer attention or writes lse in another form than the first, without a policy, and for
// one that chooses between another number of children.
std::shared_ptr<const ProblemComposite> make_problem_composite(
    std::vector<std::shared_ptr<const Backend>> children, RoutingPolicyPtr policy);

}  // namespace attn
