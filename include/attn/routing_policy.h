// Policies: which child of a composite answers a batch, why, and which requests forced it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attn/attention_backend.h"
#include "attn/metadata.h"

namespace attn {

// A row that sends its whole batch to a child.
struct ForcingRow {
  std::int32_t row = 0;
  std::string reason;  // "tokens 4..7 are inside image [2,9]"
};

struct Route {
  int child = 0;
  std::string reason;                 // one line
  std::vector<ForcingRow> forced_by;  // empty when no row alone decided
};

// Which child answers a batch: depends on the batch only, not on the order of its rows. Made for
// the layers of one group.
class RoutingPolicy {
 public:
  virtual ~RoutingPolicy() = default;
  virtual Route select(const CommonAttentionMetadata& batch) const = 0;
};

// What a policy says before there is a batch. Immutable; thread-safe.
class RoutingPolicyClass {
 public:
  virtual ~RoutingPolicyClass() = default;
  virtual std::string name() const = 0;  // "mm_prefix"
  // How many children it chooses between; none = any number. A composite of another number is
  // refused.
  virtual std::optional<int> num_children() const { return std::nullopt; }
  virtual std::unique_ptr<RoutingPolicy> make(
      const BuilderArguments& arguments, std::span<const AttentionBackendPtr> children) const = 0;
  // The child that is captured into a graph.
  virtual int capture_child(const BuilderArguments& arguments) const = 0;
  // The strongest level for which every batch that a replay may see selects capture_child.
  virtual GraphSupport cudagraph_support(const BuilderArguments& arguments) const = 0;
  // May child `child` be sent batches with image ranges? Then it must support them.
  virtual bool child_uses_mm_prefix(int child) const = 0;
};
using RoutingPolicyPtr = std::shared_ptr<const RoutingPolicyClass>;

// Throws Error unless the policy can choose among so many children.
void expect_number_of_children(const RoutingPolicyClass& policy, std::size_t count);

// vLLM's: child 0 for batches in which an image range shows a scheduled token more than causal
// attention does, else child 1. Its `make` throws VllmError KeyError for a layer name that the
// model lacks; its `select` VllmError AssertionError when seq_lens_cpu_upper_bound is missing and
// IndexError when an image belongs to a row outside the batch.
RoutingPolicyPtr mm_prefix_policy();

// Always this child.
RoutingPolicyPtr constant_policy(int child, int capture_child);

// Child 1 when no query is longer than `threshold`, else 0. longest_uniform: the longest query
// length of the uniform batches that the engine schedules; none = any.
struct MaxQueryLen {
  int threshold = 1;
  std::optional<int> longest_uniform;
  int capture_child = 1;
};
RoutingPolicyPtr max_query_len_policy(MaxQueryLen options);

// Child 1 when every row has `query_len` tokens or none, else 0. For engines whose uniform batches
// have that many tokens a row.
RoutingPolicyPtr uniform_policy(int query_len, int capture_child = 1);

// The last child that has no reason against the batch, else child 0.
RoutingPolicyPtr supports_policy(int capture_child = 0);

// Child 1 when no row is in its prompt, else 0. uniform_are_decodes: the engine's uniform batches
// hold decodes only. `select` throws VllmError AssertionError when is_prefilling is missing.
struct DecodeOnly {
  bool uniform_are_decodes = false;
  int capture_child = 1;
};
RoutingPolicyPtr decode_only_policy(DecodeOnly options);

// Child 1 when no sequence is longer than `threshold`, else 0.
RoutingPolicyPtr max_seq_len_policy(int threshold, int capture_child = 1);

// The child that `child_of` names for the head size of the group.
RoutingPolicyPtr head_size_policy(std::function<int(int head_size)> child_of);

// The child of the first predicate that holds, else `otherwise`. The level and the children that
// may see image ranges are the caller's word.
struct RoutingRule {
  std::string reason;  // of the route when the predicate holds
  std::function<bool(const CommonAttentionMetadata&)> holds;
  int child = 0;
};
struct RoutingTable {
  std::string name;
  std::vector<RoutingRule> rules;
  int otherwise = 0;
  int capture_child = 0;
  GraphSupport cudagraph_support = GraphSupport::kNever;
  std::vector<bool> uses_mm_prefix;  // [children]; children beyond its end do
};
RoutingPolicyPtr by_table_policy(RoutingTable table);

}  // namespace attn
