#include "composite/idle_ranges.h"

#include <utility>

#include "composite/image_ranges.h"

namespace attn {
namespace {

AttentionProblem plain(const AttentionProblem& problem) {
  const AttentionOp* op = problem.attention();
  if (op == nullptr || !op->mask.mm_prefix_ranges.present()) return problem;
  if (!requests_with_image_masks(*op).empty()) return problem;
  AttentionOp without = *op;
  without.mask.mm_prefix_ranges = {};
  without.mask.mm_prefix_clamp = false;
  return AttentionProblem(without);
}

class PlainPlan final : public Plan {
 public:
  explicit PlainPlan(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {}

  void run(const AttentionProblem& problem, const Outputs& outputs) const override {
    plan_->run(plain(problem), outputs);
  }
  ExecSpec exec() const override { return plan_->exec(); }

 private:
  std::unique_ptr<Plan> plan_;
};

class PlainBackend final : public Backend {
 public:
  explicit PlainBackend(std::shared_ptr<const Backend> backend) : backend_(std::move(backend)) {}

  std::string_view name() const override { return backend_->name(); }
  const Capabilities& capabilities() const override { return backend_->capabilities(); }
  PrecisionContract contract(const AttentionProblem& problem) const override {
    return backend_->contract(plain(problem));
  }
  std::vector<std::string> supports(const AttentionProblem& problem) const override {
    return backend_->supports(plain(problem));
  }
  std::size_t workspace_bytes(const AttentionProblem& problem) const override {
    return backend_->workspace_bytes(plain(problem));
  }
  std::unique_ptr<Plan> prepare(const AttentionProblem& problem,
                                Workspace workspace) const override {
    return std::make_unique<PlainPlan>(backend_->prepare(plain(problem), workspace));
  }

 private:
  std::shared_ptr<const Backend> backend_;
};

}  // namespace

std::shared_ptr<const Backend> without_idle_ranges(std::shared_ptr<const Backend> backend) {
  if (backend->capabilities().has(Feature::kMmPrefix)) return backend;
  return std::make_shared<PlainBackend>(std::move(backend));
}

}  // namespace attn
