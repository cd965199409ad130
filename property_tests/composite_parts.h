// What properties of composites are made from: children that run, and policies.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attn/backend.h"
#include "attn/composite.h"
#include "property_tests/answer.h"

namespace attn::property_tests {

// Another backend under a name of its own, without some of its features. Counts answers.
class StandIn final : public Backend {
 public:
  StandIn(std::string name, std::shared_ptr<const Backend> inner, std::uint32_t without = 0);

  std::string_view name() const override { return name_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  PrecisionContract contract(const AttentionProblem& problem) const override {
    return inner_->contract(problem);
  }
  std::size_t workspace_bytes(const AttentionProblem& problem) const override {
    return inner_->workspace_bytes(problem);
  }
  std::unique_ptr<Plan> prepare(const AttentionProblem& problem,
                                Workspace workspace) const override;

  int num_answers() const { return *num_answers_; }

 private:
  std::string name_;
  std::shared_ptr<const Backend> inner_;
  Capabilities capabilities_;
  std::shared_ptr<std::atomic<int>> num_answers_ = std::make_shared<std::atomic<int>>(0);
};

std::shared_ptr<const Backend> shared_reference();
std::shared_ptr<const Backend> shared_cpu();

// REFERENCE and CPU for batches; REFERENCE writes the cache of both.
AttentionBackendPtr reference_child();
AttentionBackendPtr cpu_child();

struct NamedPolicy {
  std::string name;  // for messages
  RoutingPolicyPtr policy;
  bool sees_images_everywhere = false;  // does not look at images: every child must mask them
};

// Every policy there is, with numbers that split random batches, for two children.
const std::vector<NamedPolicy>& policies_of_two();

// "COMPOSITE" over these; one object a name.
AttentionBackendPtr composite_of(std::vector<AttentionBackendPtr> children,
                                 const RoutingPolicyPtr& policy, const std::string& class_name);

}  // namespace attn::property_tests
