#include "core/described_rules.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/table_values.h"

namespace attn {
namespace {

enum class RuleField { kHeadSize, kKvCacheDType, kBlockSize, kHasSink, kUseMmPrefix, kMajor };
constexpr std::string_view kRuleFields[] = {"head_size", "kv_cache_dtype", "block_size",
                                            "has_sink",  "use_mm_prefix",  "major"};

// Values of all fields as integers; none = not given.
struct DescribedRule {
  RuleField field = RuleField::kHeadSize;
  std::optional<int> equals;
  std::string reason;
};

std::optional<int> code(std::optional<CacheDType> dtype) {
  return dtype ? std::optional(static_cast<int>(*dtype)) : std::nullopt;
}

std::optional<int> value_of(RuleField field, const SelectorFacts& facts,
                            const AttentionSelectorConfig& config) {
  switch (field) {
    case RuleField::kHeadSize:
      return config.head_size;
    case RuleField::kKvCacheDType:
      return code(config.kv_cache_dtype);
    case RuleField::kBlockSize:
      return config.block_size;
    case RuleField::kHasSink:
      return config.has_sink;
    case RuleField::kUseMmPrefix:
      return config.use_mm_prefix;
    case RuleField::kMajor:
      return facts.capability ? std::optional(facts.capability->major) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<int> rule_value_from(RuleField field, const JsonNode& node) {
  switch (field) {
    case RuleField::kKvCacheDType:
      return code(cache_dtype_from(node));
    case RuleField::kBlockSize:
      return optional_int_from(node);
    case RuleField::kHasSink:
    case RuleField::kUseMmPrefix:
      return node.boolean();
    default:
      return int_from(node);
  }
}

class DescribedRules final : public CombinationRules {
 public:
  explicit DescribedRules(std::vector<DescribedRule> rules) : rules_(std::move(rules)) {}

  std::uint32_t first_broken(const SelectorFacts& facts,
                             const AttentionSelectorConfig& config) const override {
    for (std::size_t index = 0; index < rules_.size(); ++index) {
      const DescribedRule& rule = rules_[index];
      if (value_of(rule.field, facts, config) == rule.equals) {
        return static_cast<std::uint32_t>(index) + 1;
      }
    }
    return 0;
  }
  std::string text(std::uint32_t rule, const SelectorFacts&,
                   const AttentionSelectorConfig&) const override {
    return rules_[rule - 1].reason;
  }
  bool has_text(std::uint32_t rule) const override { return !rules_[rule - 1].reason.empty(); }

 private:
  std::vector<DescribedRule> rules_;
};

}  // namespace

std::shared_ptr<const CombinationRules> combination_rules_from(const JsonNode& node) {
  std::vector<DescribedRule> rules;
  for (const JsonNode& element : node.elements()) {
    element.expect_only({"field", "equals", "reason"});
    DescribedRule rule;
    rule.field = static_cast<RuleField>(element.at("field").choice(kRuleFields));
    rule.equals = rule_value_from(rule.field, element.at("equals"));
    rule.reason = element.at("reason").string();
    rules.push_back(std::move(rule));
  }
  return std::make_shared<DescribedRules>(std::move(rules));
}

}  // namespace attn
