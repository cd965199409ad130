// The policies that are not vLLM's.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "attn/error.h"
#include "attn/routing_policy.h"
#include "attn/vllm_error.h"

namespace attn {
namespace {

using Batch = CommonAttentionMetadata;
using Select = std::function<Route(const Batch&)>;

class SelectPolicy final : public RoutingPolicy {
 public:
  explicit SelectPolicy(Select select) : select_(std::move(select)) {}
  Route select(const Batch& batch) const override { return select_(batch); }

 private:
  Select select_;
};

// A policy that looks at nothing but the batch.
struct BatchPolicy {
  std::string name;
  Select select;
  std::optional<int> num_children = std::nullopt;
  int capture_child = 0;
  GraphSupport cudagraph_support = GraphSupport::kNever;
  std::function<bool(int child)> uses_mm_prefix = [](int) { return true; };
};

class BatchPolicyClass final : public RoutingPolicyClass {
 public:
  explicit BatchPolicyClass(BatchPolicy policy) : policy_(std::move(policy)) {}

  std::string name() const override { return policy_.name; }
  std::optional<int> num_children() const override { return policy_.num_children; }
  std::unique_ptr<RoutingPolicy> make(const BuilderArguments&,
                                      std::span<const AttentionBackendPtr>) const override {
    return std::make_unique<SelectPolicy>(policy_.select);
  }
  int capture_child(const BuilderArguments&) const override { return policy_.capture_child; }
  GraphSupport cudagraph_support(const BuilderArguments&) const override {
    return policy_.cudagraph_support;
  }
  bool child_uses_mm_prefix(int child) const override { return policy_.uses_mm_prefix(child); }

 private:
  BatchPolicy policy_;
};

RoutingPolicyPtr shared(BatchPolicy policy) {
  return std::make_shared<const BatchPolicyClass>(std::move(policy));
}

std::int32_t num_rows(const Batch& batch) {
  return static_cast<std::int32_t>(batch.query_start_loc_cpu.size()) - 1;
}

// Rows of which `why` gives a reason.
template <class Why>
std::vector<ForcingRow> rows_with(std::int32_t rows, const Why& why) {
  std::vector<ForcingRow> forced;
  for (std::int32_t row = 0; row < rows; ++row) {
    std::string reason = why(row);
    if (!reason.empty()) forced.push_back({row, std::move(reason)});
  }
  return forced;
}

std::vector<ForcingRow> rows_longer(const Batch& batch, std::int32_t threshold) {
  return rows_with(num_rows(batch), [&](std::int32_t row) -> std::string {
    const std::int32_t length = batch.query_len(row);
    return length > threshold ? fmt::format("query length {} > {}", length, threshold) : "";
  });
}

// Selects the last child without a reason against the batch.
class SupportsPolicyClass final : public RoutingPolicyClass {
 public:
  explicit SupportsPolicyClass(int capture_child) : capture_child_(capture_child) {}

  std::string name() const override { return "supports"; }
  std::unique_ptr<RoutingPolicy> make(
      const BuilderArguments& arguments,
      std::span<const AttentionBackendPtr> children) const override {
    std::vector<AttentionBackendPtr> own(children.begin(), children.end());
    return std::make_unique<SelectPolicy>([arguments, own = std::move(own)](const Batch& batch) {
      std::string against;
      for (std::size_t child = own.size() - 1; child > 0; --child) {
        const std::vector<std::string> reasons = own[child]->reasons_against(batch, arguments);
        if (reasons.empty()) {
          return Route{static_cast<int>(child), own[child]->name() + " supports the batch", {}};
        }
        if (!against.empty()) against += ", ";
        against += fmt::format("{}: {}", own[child]->name(), fmt::join(reasons, "; "));
      }
      return Route{0, std::move(against), {}};
    });
  }
  int capture_child(const BuilderArguments&) const override { return capture_child_; }
  GraphSupport cudagraph_support(const BuilderArguments&) const override {
    return GraphSupport::kNever;
  }
  // The others get what they support.
  bool child_uses_mm_prefix(int child) const override { return child == 0; }

 private:
  int capture_child_;
};

class HeadSizePolicyClass final : public RoutingPolicyClass {
 public:
  explicit HeadSizePolicyClass(std::function<int(int)> child_of) : child_of_(std::move(child_of)) {}

  std::string name() const override { return "head_size"; }
  std::unique_ptr<RoutingPolicy> make(const BuilderArguments& arguments,
                                      std::span<const AttentionBackendPtr>) const override {
    Route route = {child_of_(arguments.spec.head_size),
                   fmt::format("head size {}", arguments.spec.head_size),
                   {}};
    return std::make_unique<SelectPolicy>(
        [route = std::move(route)](const Batch&) { return route; });
  }
  int capture_child(const BuilderArguments& arguments) const override {
    return child_of_(arguments.spec.head_size);
  }
  GraphSupport cudagraph_support(const BuilderArguments&) const override {
    return GraphSupport::kAlways;
  }
  bool child_uses_mm_prefix(int) const override { return true; }

 private:
  std::function<int(int)> child_of_;
};

}  // namespace

void expect_number_of_children(const RoutingPolicyClass& policy, std::size_t count) {
  const std::optional<int> wanted = policy.num_children();
  if (wanted && static_cast<std::size_t>(*wanted) != count) {
    throw Error(fmt::format("policy {} chooses between {} children, the composite has {}",
                            policy.name(), *wanted, count));
  }
}

RoutingPolicyPtr constant_policy(int child, int capture_child) {
  return shared(
      {.name = fmt::format("constant({})", child),
       .select =
           [child](const Batch&) {
             return Route{child, "every batch", {}};
           },
       .capture_child = capture_child,
       .cudagraph_support = child == capture_child ? GraphSupport::kAlways : GraphSupport::kNever,
       .uses_mm_prefix = [child](int other) { return other == child; }});
}

RoutingPolicyPtr max_query_len_policy(MaxQueryLen options) {
  const std::int32_t threshold = options.threshold;
  GraphSupport support = GraphSupport::kNever;
  if (threshold >= 1 && options.capture_child == 1) {
    const bool all = options.longest_uniform && *options.longest_uniform <= threshold;
    support = all ? GraphSupport::kUniformBatch : GraphSupport::kUniformSingleTokenDecode;
  }
  return shared({.name = fmt::format("max_query_len({})", threshold),
                 .select =
                     [threshold](const Batch& batch) {
                       const bool within = batch.max_query_len <= threshold;
                       return Route{
                           within ? 1 : 0,
                           fmt::format("longest query {} {} {}", batch.max_query_len,
                                       within ? "<=" : ">", threshold),
                           within ? std::vector<ForcingRow>{} : rows_longer(batch, threshold)};
                     },
                 .num_children = 2,
                 .capture_child = options.capture_child,
                 .cudagraph_support = support});
}

RoutingPolicyPtr uniform_policy(int query_len, int capture_child) {
  return shared({.name = fmt::format("uniform({})", query_len),
                 .select =
                     [query_len](const Batch& batch) {
                       std::vector<ForcingRow> others =
                           rows_with(num_rows(batch), [&](std::int32_t row) -> std::string {
                             const std::int32_t length = batch.query_len(row);
                             if (length == query_len || length == 0) return "";
                             return fmt::format("query length {}, not {}", length, query_len);
                           });
                       if (others.empty())
                         return Route{1, fmt::format("every query has {}", query_len), {}};
                       return Route{0, "queries of other lengths", std::move(others)};
                     },
                 .num_children = 2,
                 .capture_child = capture_child,
                 .cudagraph_support =
                     capture_child == 1 ? GraphSupport::kUniformBatch : GraphSupport::kNever});
}

RoutingPolicyPtr supports_policy(int capture_child) {
  return std::make_shared<const SupportsPolicyClass>(capture_child);
}

RoutingPolicyPtr decode_only_policy(DecodeOnly options) {
  const bool captures = options.uniform_are_decodes && options.capture_child == 1;
  return shared(
      {.name = "decode_only",
       .select =
           [](const Batch& batch) {
             if (!batch.is_prefilling) {
               throw VllmError("AssertionError", "is_prefilling is missing");
             }
             const std::vector<bool>& prefilling = *batch.is_prefilling;
             std::vector<ForcingRow> rows =
                 rows_with(static_cast<std::int32_t>(prefilling.size()), [&](std::int32_t row) {
                   return prefilling[static_cast<std::size_t>(row)] ? "still in its prompt" : "";
                 });
             if (rows.empty()) return Route{1, "decodes only", {}};
             return Route{0, "prefills", std::move(rows)};
           },
       .num_children = 2,
       .capture_child = options.capture_child,
       .cudagraph_support = captures ? GraphSupport::kUniformBatch : GraphSupport::kNever});
}

RoutingPolicyPtr max_seq_len_policy(int threshold, int capture_child) {
  return shared(
      {.name = fmt::format("max_seq_len({})", threshold),
       .select =
           [threshold](const Batch& batch) {
             const bool within = batch.max_seq_len <= threshold;
             std::string reason = fmt::format("longest sequence {} {} {}", batch.max_seq_len,
                                              within ? "<=" : ">", threshold);
             if (within) return Route{1, std::move(reason), {}};
             return Route{0, std::move(reason),
                          rows_with(static_cast<std::int32_t>(batch.seq_lens.size()),
                                    [&](std::int32_t row) -> std::string {
                                      const std::int32_t length =
                                          batch.seq_lens[static_cast<std::size_t>(row)];
                                      if (length <= threshold) return "";
                                      return fmt::format("length {} > {}", length, threshold);
                                    })};
           },
       .num_children = 2,
       .capture_child = capture_child,
       .cudagraph_support = GraphSupport::kNever});
}

RoutingPolicyPtr head_size_policy(std::function<int(int head_size)> child_of) {
  return std::make_shared<const HeadSizePolicyClass>(std::move(child_of));
}

RoutingPolicyPtr by_table_policy(RoutingTable table) {
  const auto rules = std::make_shared<const std::vector<RoutingRule>>(std::move(table.rules));
  return shared({.name = table.name,
                 .select =
                     [rules, otherwise = table.otherwise](const Batch& batch) {
                       for (const RoutingRule& rule : *rules) {
                         if (rule.holds(batch)) return Route{rule.child, rule.reason, {}};
                       }
                       return Route{otherwise, "no rule holds", {}};
                     },
                 .capture_child = table.capture_child,
                 .cudagraph_support = table.cudagraph_support,
                 .uses_mm_prefix =
                     [uses = std::move(table.uses_mm_prefix)](int child) {
                       const auto index = static_cast<std::size_t>(child);
                       return index >= uses.size() || uses[index];
                     }});
}

}  // namespace attn
