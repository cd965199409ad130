// Policies: what they select, why, and for which rows.
#include "attn/routing_policy.h"

#include <gtest/gtest.h>

#include "attn/vllm_error.h"
#include "tests/scripted_child.h"

namespace attn {
namespace {

Route select(const RoutingPolicyPtr& policy, const CommonAttentionMetadata& batch,
             const BuilderArguments& arguments = {}) {
  return policy->make(arguments, {})->select(batch);
}

BuilderArguments layers(std::optional<std::optional<int>> window, std::optional<bool> clamp) {
  BuilderArguments arguments;
  arguments.model = {{"l0", window, clamp}};
  arguments.layer_names = {"l0"};
  return arguments;
}
const BuilderArguments kClamped = layers(512, true);
const BuilderArguments kUnclamped = layers(512, false);

CommonAttentionMetadata with_image(int query_len, int seq_len, ImageRange image) {
  CommonAttentionMetadata batch = batch_of_lengths({query_len}, {seq_len});
  batch.mm_req_doc_ranges = {{0, {image}}};
  return batch;
}

struct MaskCase {
  int query_len;
  int seq_len;
  ImageRange image;
  int clamped;
  int unclamped;
};

TEST(MmPrefixPolicy, SelectsTheGeneralChildWhenAnImageShowsMore) {
  const MaskCase cases[] = {
      {16, 32, {20, 28}, 0, 0}, {16, 32, {0, 16}, 1, 0},  {16, 32, {0, 17}, 0, 0},
      {16, 32, {32, 40}, 1, 1}, {16, 32, {31, 40}, 1, 0}, {1, 24, {20, 28}, 1, 0},
      {0, 24, {20, 28}, 1, 1},  {16, 32, {20, 20}, 1, 1}, {16, 64, {20, 28}, 1, 1}};
  for (const MaskCase& one : cases) {
    const CommonAttentionMetadata batch = with_image(one.query_len, one.seq_len, one.image);
    EXPECT_EQ(select(mm_prefix_policy(), batch, kClamped).child, one.clamped);
    EXPECT_EQ(select(mm_prefix_policy(), batch).child, one.clamped);
    EXPECT_EQ(select(mm_prefix_policy(), batch, layers(std::optional<int>(), {})).child,
              one.clamped);
    EXPECT_EQ(select(mm_prefix_policy(), batch, kUnclamped).child, one.unclamped);
    EXPECT_EQ(select(mm_prefix_policy(), batch, layers(512, {})).child, one.unclamped);
  }
}

TEST(MmPrefixPolicy, NamesEveryRowThatForcedIt) {
  CommonAttentionMetadata batch = batch_of_lengths({16, 4, 8}, {32, 4, 8});
  batch.mm_req_doc_ranges = {{2, {{0, 3}}}, {1, {{9, 12}}}, {0, {{2, 5}, {20, 28}}}};
  const Route route = select(mm_prefix_policy(), batch, kClamped);
  EXPECT_EQ(route.child, 0);
  ASSERT_EQ(route.forced_by.size(), 2U);
  EXPECT_EQ(route.forced_by[0].row, 2);
  EXPECT_EQ(route.forced_by[0].reason, "tokens 0..3 are inside image [0,3]");
  EXPECT_EQ(route.forced_by[1].row, 0);
  EXPECT_EQ(route.forced_by[1].reason, "tokens 20..28 are inside image [20,28]");
  EXPECT_EQ(route.reason, "row 2: tokens 0..3 are inside image [0,3]");
  batch.mm_req_doc_ranges.reset();
  EXPECT_EQ(select(mm_prefix_policy(), batch, kClamped).reason, "no image range");
}

TEST(MmPrefixPolicy, RowsOutsideTheBatchAndMissingBoundsAreErrors) {
  CommonAttentionMetadata batch = batch_of_lengths({4}, {9});
  for (const int row : {-1, 1, 1 << 30}) {
    batch.mm_req_doc_ranges = {{row, {{6, 8}}}};
    EXPECT_EQ(thrown<VllmError>([&] { select(mm_prefix_policy(), batch); }),
              "mm_req_doc_ranges has row " + std::to_string(row) + ", outside [0, 1)");
  }
  batch.mm_req_doc_ranges = {{0, {{6, 8}}}};
  batch.seq_lens_cpu_upper_bound.reset();
  EXPECT_EQ(thrown<VllmError>([&] { select(mm_prefix_policy(), batch); }),
            "seq_lens_cpu_upper_bound is missing");
}

TEST(RoutingPolicies, MaxQueryLenSelectsByTheBound) {
  const CommonAttentionMetadata batch = batch_of_lengths({1, 5, 0, 7}, {9, 9, 0, 9});
  const Route route = select(max_query_len_policy({4, {}, 1}), batch);
  EXPECT_EQ(route.child, 0);
  EXPECT_EQ(route.reason, "longest query 7 > 4");
  ASSERT_EQ(route.forced_by.size(), 2U);
  EXPECT_EQ(route.forced_by[0].row, 1);
  EXPECT_EQ(route.forced_by[1].row, 3);
  EXPECT_EQ(route.forced_by[1].reason, "query length 7 > 4");
  EXPECT_EQ(select(max_query_len_policy({7, {}, 1}), batch).child, 1);
}

TEST(RoutingPolicies, UniformAllowsPadding) {
  EXPECT_EQ(select(uniform_policy(3), batch_of_lengths({3, 0, 3}, {9, 0, 3})).child, 1);
  const Route route = select(uniform_policy(3), batch_of_lengths({3, 2, 3}, {9, 2, 3}));
  EXPECT_EQ(route.child, 0);
  ASSERT_EQ(route.forced_by.size(), 1U);
  EXPECT_EQ(route.forced_by[0].row, 1);
}

TEST(RoutingPolicies, DecodeOnlyNeedsToKnowWhoIsPrefilling) {
  CommonAttentionMetadata batch = batch_of_lengths({1, 1}, {9, 3});
  EXPECT_EQ(thrown<VllmError>([&] { select(decode_only_policy({}), batch); }),
            "is_prefilling is missing");
  batch.is_prefilling = {false, true};
  const Route route = select(decode_only_policy({}), batch);
  EXPECT_EQ(route.child, 0);
  ASSERT_EQ(route.forced_by.size(), 1U);
  EXPECT_EQ(route.forced_by[0].row, 1);
  batch.is_prefilling = {false, false};
  EXPECT_EQ(select(decode_only_policy({}), batch).child, 1);
}

TEST(RoutingPolicies, MaxSeqLenNamesLongSequences) {
  const Route route = select(max_seq_len_policy(8), batch_of_lengths({1, 1}, {8, 9}));
  EXPECT_EQ(route.child, 0);
  ASSERT_EQ(route.forced_by.size(), 1U);
  EXPECT_EQ(route.forced_by[0].row, 1);
  EXPECT_EQ(select(max_seq_len_policy(9), batch_of_lengths({1, 1}, {8, 9})).child, 1);
}

TEST(RoutingPolicies, HeadSizeIsThatOfTheGroup) {
  const RoutingPolicyPtr policy = head_size_policy([](int size) { return size > 128 ? 2 : 1; });
  BuilderArguments arguments;
  arguments.spec.head_size = 256;
  EXPECT_EQ(select(policy, {}, arguments).child, 2);
  EXPECT_EQ(policy->capture_child(arguments), 2);
  arguments.spec.head_size = 64;
  EXPECT_EQ(select(policy, {}, arguments).child, 1);
  EXPECT_EQ(policy->capture_child(arguments), 1);
}

TEST(RoutingPolicies, TheFirstRuleThatHoldsDecides) {
  RoutingTable table;
  table.name = "mine";
  table.rules = {{"long", [](const auto& batch) { return batch.max_query_len > 4; }, 2},
                 {"any", [](const auto& batch) { return batch.max_seq_len > 4; }, 1}};
  table.uses_mm_prefix = {true, false};
  const RoutingPolicyPtr policy = by_table_policy(table);
  EXPECT_EQ(select(policy, batch_of_lengths({5}, {5})).child, 2);
  EXPECT_EQ(select(policy, batch_of_lengths({5}, {5})).reason, "long");
  EXPECT_EQ(select(policy, batch_of_lengths({4}, {5})).child, 1);
  EXPECT_EQ(select(policy, batch_of_lengths({4}, {4})).child, 0);
  EXPECT_TRUE(policy->child_uses_mm_prefix(0));
  EXPECT_FALSE(policy->child_uses_mm_prefix(1));
  EXPECT_TRUE(policy->child_uses_mm_prefix(2));
}

// A scripted backend that has these reasons against batches with more than one row.
class Picky final : public AttentionBackend {
 public:
  Picky(std::string own_name, std::vector<std::string> reasons)
      : name_(std::move(own_name)), reasons_(std::move(reasons)) {}
  std::string name() const override { return name_; }
  ClassName full_class_name() const override { return {"test", name_}; }
  DescribedBackend describe(const std::optional<DeviceCapability>&) const override { return {}; }
  BlockSizes kernel_block_sizes(const KvCacheSpec&) const override { return {}; }
  GraphSupport cudagraph_support(const BuilderArguments&) const override {
    return GraphSupport::kNever;
  }
  std::vector<std::string> reasons_against(const CommonAttentionMetadata& batch,
                                           const BuilderArguments&) const override {
    return batch.num_reqs > 1 ? reasons_ : std::vector<std::string>{};
  }
  std::unique_ptr<AttentionMetadataBuilder> make_builder(const BuilderArguments&) const override {
    return nullptr;
  }
  std::unique_ptr<AttentionImpl> make_impl(const ImplArguments&) const override { return nullptr; }

 private:
  std::string name_;
  std::vector<std::string> reasons_;
};

TEST(RoutingPolicies, SupportsTakesTheLastChildWithoutReasons) {
  const std::vector<AttentionBackendPtr> children = {
      std::make_shared<Picky>("A", std::vector<std::string>{"never asked"}),
      std::make_shared<Picky>("B", std::vector<std::string>{"no"}),
      std::make_shared<Picky>("D", std::vector<std::string>{"x", "y"})};
  const auto policy = supports_policy()->make({}, children);
  EXPECT_EQ(policy->select(batch_of_lengths({1}, {1})).child, 2);
  const Route route = policy->select(batch_of_lengths({1, 1}, {1, 1}));
  EXPECT_EQ(route.child, 0);
  EXPECT_EQ(route.reason, "D: x; y, B: no");
}

TEST(RoutingPolicies, GraphLevelsAreHonest) {
  const auto level = [](const RoutingPolicyPtr& policy, const BuilderArguments& arguments = {}) {
    return name(policy->cudagraph_support(arguments));
  };
  EXPECT_EQ(level(mm_prefix_policy(), kClamped), "UNIFORM_SINGLE_TOKEN_DECODE");
  EXPECT_EQ(level(mm_prefix_policy(), kUnclamped), "NEVER");
  EXPECT_EQ(level(constant_policy(1, 1)), "ALWAYS");
  EXPECT_EQ(level(constant_policy(1, 0)), "NEVER");
  EXPECT_EQ(level(max_query_len_policy({4, {}, 1})), "UNIFORM_SINGLE_TOKEN_DECODE");
  EXPECT_EQ(level(max_query_len_policy({4, 4, 1})), "UNIFORM_BATCH");
  EXPECT_EQ(level(max_query_len_policy({4, 5, 1})), "UNIFORM_SINGLE_TOKEN_DECODE");
  EXPECT_EQ(level(max_query_len_policy({4, 4, 0})), "NEVER");
  EXPECT_EQ(level(max_query_len_policy({0, 0, 1})), "NEVER");
  EXPECT_EQ(level(uniform_policy(4)), "UNIFORM_BATCH");
  EXPECT_EQ(level(uniform_policy(4, 0)), "NEVER");
  EXPECT_EQ(level(supports_policy()), "NEVER");
  EXPECT_EQ(level(decode_only_policy({})), "NEVER");
  EXPECT_EQ(level(decode_only_policy({true, 1})), "UNIFORM_BATCH");
  EXPECT_EQ(level(decode_only_policy({true, 0})), "NEVER");
  EXPECT_EQ(level(max_seq_len_policy(9)), "NEVER");
  EXPECT_EQ(level(head_size_policy([](int) { return 1; })), "ALWAYS");
}

}  // namespace
}  // namespace attn
