#include "composite/table_policy.h"

#include <utility>

#include "core/child_description.h"
#include "core/table_values.h"

namespace attn {
namespace {

class TablePolicyClass final : public RoutingPolicyClass {
 public:
  TablePolicyClass(RoutingPolicyPtr select, const JsonNode& node)
      : select_(std::move(select)),
        capture_child_(int_from(node.at("capture_variant"))),
        support_(graph_support_from(node.at("cudagraph_support"))) {
    for (const JsonNode& element : node.at("uses_mm_prefix").elements()) {
      uses_mm_prefix_.push_back(element.boolean());
    }
    if (uses_mm_prefix_.size() != 2) node.at("uses_mm_prefix").fail("two booleans");
  }

  std::string name() const override { return select_->name(); }
  std::unique_ptr<RoutingPolicy> make(
      const BuilderArguments& arguments,
      std::span<const AttentionBackendPtr> children) const override {
    return select_->make(arguments, children);
  }
  int capture_child(const BuilderArguments&) const override { return capture_child_; }
  GraphSupport cudagraph_support(const BuilderArguments&) const override { return support_; }
  bool child_uses_mm_prefix(int child) const override {
    return uses_mm_prefix_[static_cast<std::size_t>(child)];
  }

 private:
  RoutingPolicyPtr select_;
  int capture_child_;
  GraphSupport support_;
  std::vector<bool> uses_mm_prefix_;
};

RoutingPolicyPtr select_from(const JsonNode& node, std::size_t kind) {
  switch (kind) {
    case 1:
      return constant_policy(variant_from(node.at("variant")), 0);
    case 2:
      return max_query_len_policy({int_from(node.at("threshold")), std::nullopt, 1});
    case 3:
      return max_seq_len_policy(int_from(node.at("threshold")));
    default:
      return decode_only_policy({});
  }
}

}  // namespace

int variant_from(const JsonNode& node) {
  return node.is_boolean() ? static_cast<int>(node.boolean()) : int_from(node);
}

TablePolicy table_policy_from(const JsonNode& node) {
  node.expect_only(
      {"kind", "variant", "threshold", "capture_variant", "cudagraph_support", "uses_mm_prefix"});
  const std::size_t kind = node.at("kind").choice(
      {"mm_prefix", "constant", "max_query_len", "max_seq_len", "decode_only"});
  if (kind == 0) return {mm_prefix_policy(), false};
  return {std::make_shared<const TablePolicyClass>(select_from(node, kind), node),
          kind == 1 && node.at("variant").is_boolean()};
}

}  // namespace attn
