#include "property_tests/composite_parts.h"

#include "attn/cpu_backend.h"
#include "attn/executable_backend.h"
#include "attn/reference.h"

namespace attn::property_tests {
namespace {

class CountedPlan final : public Plan {
 public:
  CountedPlan(std::unique_ptr<Plan> plan, std::shared_ptr<std::atomic<int>> count)
      : plan_(std::move(plan)), count_(std::move(count)) {}

  void run(const AttentionProblem& problem, const Outputs& outputs) const override {
    ++*count_;
    plan_->run(problem, outputs);
  }
  ExecSpec exec() const override { return plan_->exec(); }

 private:
  std::unique_ptr<Plan> plan_;
  std::shared_ptr<std::atomic<int>> count_;
};

RoutingPolicyPtr by_first_length() {
  RoutingTable table;
  table.name = "long_then_many";
  table.rules = {{"a query of more than 8 tokens",
                  [](const CommonAttentionMetadata& batch) { return batch.max_query_len > 8; }, 0},
                 {"more than 2 rows",
                  [](const CommonAttentionMetadata& batch) { return batch.num_reqs > 2; }, 1}};
  table.otherwise = 0;
  return by_table_policy(std::move(table));
}

}  // namespace

StandIn::StandIn(std::string name, std::shared_ptr<const Backend> inner, std::uint32_t without)
    : name_(std::move(name)), inner_(std::move(inner)), capabilities_(inner_->capabilities()) {
  capabilities_.features &= ~without;
}

std::unique_ptr<Plan> StandIn::prepare(const AttentionProblem& problem, Workspace workspace) const {
  require_supported(*this, problem, workspace);
  return std::make_unique<CountedPlan>(inner_->prepare(problem, workspace), num_answers_);
}

std::shared_ptr<const Backend> shared_reference() {
  static const std::shared_ptr<const Backend> backend = make_reference_backend();
  return backend;
}

std::shared_ptr<const Backend> shared_cpu() {
  static const std::shared_ptr<const Backend> backend = make_cpu_backend();
  return backend;
}

AttentionBackendPtr reference_child() {
  static const AttentionBackendPtr child = make_executable_backend(shared_reference());
  return child;
}

AttentionBackendPtr cpu_child() {
  static const AttentionBackendPtr child =
      make_executable_backend(shared_cpu(), shared_reference());
  return child;
}

const std::vector<NamedPolicy>& policies_of_two() {
  static const std::vector<NamedPolicy> all = {
      {"mm_prefix", mm_prefix_policy()},
      {"constant(0)", constant_policy(0, 0), true},
      {"constant(1)", constant_policy(1, 1), true},
      {"constant(1) capturing 0", constant_policy(1, 0), true},
      {"max_query_len(1)", max_query_len_policy({1, std::nullopt, 1}), true},
      {"max_query_len(4)", max_query_len_policy({4, 4, 1}), true},
      {"uniform(1)", uniform_policy(1), true},
      {"uniform(3)", uniform_policy(3), true},
      {"supports", supports_policy()},
      {"decode_only", decode_only_policy({}), true},
      {"decode_only of uniform decodes", decode_only_policy({true, 1}), true},
      {"max_seq_len(12)", max_seq_len_policy(12), true},
      {"head_size", head_size_policy([](int size) { return size % 2; }), true},
      {"by_table", by_first_length(), true}};
  return all;
}

AttentionBackendPtr composite_of(std::vector<AttentionBackendPtr> children,
                                 const RoutingPolicyPtr& policy, const std::string& class_name) {
  CompositeOptions options;
  options.class_name = class_name;
  return compose(std::move(children), policy, options);
}

}  // namespace attn::property_tests
