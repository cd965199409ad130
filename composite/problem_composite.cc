#include "attn/problem_composite.h"

#include <fmt/format.h>

#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "attn/error.h"
#include "composite/executable_backend.h"
#include "core/contains.h"

namespace attn {
namespace {

using Children = std::vector<std::shared_ptr<const Backend>>;

// A child before a policy, which may ask what speaks against a batch: here, against the problem.
class Candidate final : public ExecutableBackend {
 public:
  Candidate(std::shared_ptr<const Backend> child, const AttentionProblem& problem)
      : ExecutableBackend(std::move(child), nullptr), problem_(problem) {}

  std::vector<std::string> reasons_against(const CommonAttentionMetadata&,
                                           const BuilderArguments&) const override {
    return answering()->supports(problem_);
  }

 private:
  const AttentionProblem& problem_;
};

template <class T>
void add_missing(std::vector<T>& to, const std::vector<T>& from) {
  for (const T& item : from) {
    if (!contains(to, item)) to.push_back(item);
  }
}

HeadSizeRule widened(const HeadSizeRule& a, const HeadSizeRule& b) {
  return {std::min(a.min, b.min), a.max == 0 || b.max == 0 ? 0 : std::max(a.max, b.max),
          std::gcd(a.multiple_of, b.multiple_of)};
}

Capabilities of_some_child(const Children& children) {
  Capabilities all = children.front()->capabilities();
  for (const auto& child : children) {
    const Capabilities& c = child->capabilities();
    add_missing(all.operations, c.operations);
    add_missing(all.contracts, c.contracts);
    add_missing(all.query_dtypes, c.query_dtypes);
    add_missing(all.kv_dtypes, c.kv_dtypes);
    add_missing(all.kv_encodings, c.kv_encodings);
    add_missing(all.kv_layouts, c.kv_layouts);
    add_missing(all.output_dtypes, c.output_dtypes);
    all.head_size = widened(all.head_size, c.head_size);
    all.features |= c.features;
    all.returns_lse |= c.returns_lse;
    all.honours_splits |= c.honours_splits;
    all.honours_common_prefix |= c.honours_common_prefix;
    all.honours_dcp |= c.honours_dcp;
    all.device_memory |= c.device_memory;
    all.conditioning |= c.conditioning;
  }
  all.batch_invariant = false;  // one request may send the others to another child
  return all;
}

std::string name_of(const Children& children, const RoutingPolicyClass& policy) {
  std::vector<std::string_view> names;
  for (const auto& child : children) names.push_back(child->name());
  const std::string chosen_by = policy.name();
  return fmt::format("COMPOSITE({}{})", fmt::join(names, ","),
                     chosen_by == "mm_prefix" ? "" : ",policy=" + chosen_by);
}

bool is_composite(const Backend& child) {
  return dynamic_cast<const ProblemComposite*>(&child) != nullptr;
}

void expect_children(const Children& children) {
  if (children.size() < 2) {
    throw Error(fmt::format("a composite needs at least 2 children, got {}", children.size()));
  }
  std::set<std::string_view> names;
  for (const auto& child : children) {
    if (!child) throw Error("a child of a composite is null");
    if (!names.insert(child->name()).second) {
      throw Error(fmt::format("a composite has {} twice", child->name()));
    }
    if (child->capabilities().lse_form != children.front()->capabilities().lse_form) {
      throw Error(fmt::format("{} and {} write lse in different forms", children.front()->name(),
                              child->name()));
    }
  }
}

class RoutedPlan final : public Plan {
 public:
  // `composite` and `child` outlive the plan, as backends outlive theirs.
  RoutedPlan(const ProblemComposite& composite, const Backend& child, std::unique_ptr<Plan> plan)
      : composite_(composite), child_(child), plan_(std::move(plan)) {}

  void run(const AttentionProblem& problem, const Outputs& outputs) const override {
    const Backend& now = *composite_.route(problem).child;
    if (&now != &child_) {
      throw Error(fmt::format("the plan was prepared for {}, this problem is for {}", child_.name(),
                              now.name()));
    }
    plan_->run(problem, outputs);
  }
  ExecSpec exec() const override { return plan_->exec(); }

 private:
  const ProblemComposite& composite_;
  const Backend& child_;
  std::unique_ptr<Plan> plan_;
};

class RoutedBackend final : public ProblemComposite {
 public:
  RoutedBackend(Children children, RoutingPolicyPtr policy)
      : children_(std::move(children)), policy_(std::move(policy)) {
    expect_children(children_);
    if (!policy_) throw Error("a composite has no policy");
    expect_number_of_children(*policy_, children_.size());
    for (std::shared_ptr<const Backend>& child : children_) {
      if (!is_composite(*child)) child = ExecutableBackend(child, nullptr).answering();
    }
    capabilities_ = of_some_child(children_);
    name_ = name_of(children_, *policy_);
  }

  std::string_view name() const override { return name_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const RoutingPolicyClass& policy() const override { return *policy_; }

  PrecisionContract contract(const AttentionProblem& problem) const override {
    return route(problem).child->contract(problem);
  }
  std::vector<std::string> supports(const AttentionProblem& problem) const override {
    return route(problem).child->supports(problem);
  }
  std::size_t workspace_bytes(const AttentionProblem& problem) const override {
    return route(problem).child->workspace_bytes(problem);
  }
  std::unique_ptr<Plan> prepare(const AttentionProblem& problem,
                                Workspace workspace) const override {
    const Backend& child = *route(problem).child;
    return std::make_unique<RoutedPlan>(*this, child, child.prepare(problem, workspace));
  }

  ProblemRoute route(const AttentionProblem& problem) const override {
    ProblemRoute result;
    result.route = outermost_route(problem);
    const Backend& child = *children_[static_cast<std::size_t>(result.route.child)];
    if (const auto* inner = dynamic_cast<const ProblemComposite*>(&child)) {
      ProblemRoute rest = inner->route(problem);
      result.path = std::move(rest.path);
      result.child = rest.child;
    } else {
      result.child = &child;
    }
    result.path.insert(result.path.begin(), result.route.child);
    return result;
  }

  std::vector<Route> request_routes(const AttentionProblem& problem) const override {
    std::vector<Route> routes;
    const AttentionOp* op = problem.attention();
    for (std::int64_t r = 0; op != nullptr && r < op->num_reqs(); ++r) {
      routes.push_back(select(problem, *op, batch_of_request(*op, r)));
    }
    return routes;
  }

 private:
  Route outermost_route(const AttentionProblem& problem) const {
    if (const AttentionOp* op = problem.attention()) return select(problem, *op, batch_of(*op));
    return {0, fmt::format("operation {} is not routed", attn::name(problem.kind())), {}};
  }

  Route select(const AttentionProblem& problem, const AttentionOp& op,
               const CommonAttentionMetadata& batch) const {
    std::vector<AttentionBackendPtr> candidates;
    for (const auto& child : children_) {
      candidates.push_back(std::make_shared<Candidate>(child, problem));
    }
    Route route = policy_->make(builder_arguments_of(op), candidates)->select(batch);
    if (route.child < 0 || static_cast<std::size_t>(route.child) >= children_.size()) {
      throw Error(fmt::format("policy {} selects child {} of {}", policy_->name(), route.child,
                              children_.size()));
    }
    return route;
  }

  Children children_;
  RoutingPolicyPtr policy_;
  Capabilities capabilities_;
  std::string name_;
};

}  // namespace

std::shared_ptr<const ProblemComposite> make_problem_composite(Children children,
                                                               RoutingPolicyPtr policy) {
  return std::make_shared<RoutedBackend>(std::move(children), std::move(policy));
}

}  // namespace attn
