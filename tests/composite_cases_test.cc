// Records of public reports about composites: when the image backend is needed (H05), which block
// sizes one cache for two backends may have (H06), and when a common prefix may be computed apart
// (H23).
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "attn/routing_policy.h"
#include "attn/shared_prefix.h"
#include "core/composite_description.h"
#include "tests/hand_made_record.h"

namespace attn {
namespace {

using Json = nlohmann::json;

// [[query_len, seq_len, [[start, end], ...]], ...]
CommonAttentionMetadata batch_of_record(const Json& requests) {
  CommonAttentionMetadata batch;
  batch.query_start_loc = {0};
  batch.mm_req_doc_ranges.emplace();
  for (const Json& request : requests) {
    const auto query_len = request[0].get<std::int32_t>();
    batch.query_start_loc.push_back(batch.query_start_loc.back() + query_len);
    batch.seq_lens.push_back(request[1].get<std::int32_t>());
    batch.max_query_len = std::max(batch.max_query_len, query_len);
    batch.max_seq_len = std::max(batch.max_seq_len, batch.seq_lens.back());
    RowImages images{batch.num_reqs, {}};
    for (const Json& range : request[2]) images.ranges.push_back({range[0], range[1]});
    if (!images.ranges.empty()) batch.mm_req_doc_ranges->push_back(images);
    ++batch.num_reqs;
  }
  batch.query_start_loc_cpu = batch.query_start_loc;
  batch.seq_lens_cpu_upper_bound = batch.seq_lens;
  batch.num_actual_tokens = batch.query_start_loc.back();
  batch.slot_mapping.assign(static_cast<std::size_t>(batch.num_actual_tokens), -1);
  validate(batch);
  return batch;
}

BuilderArguments one_layer(std::optional<std::optional<int>> window, bool clamped) {
  BuilderArguments group;
  group.layer_names = {"layers.0"};
  group.model = {{"layers.0", window, clamped}};
  return group;
}

TEST(RoutingRecord, H05SaysWhenTheImageBackendIsNeeded) {
  const Json cases = hand_made_record("H05").at("cases");
  ASSERT_EQ(cases.size(), 13U);
  const RoutingPolicyPtr policy = mm_prefix_policy();
  // The rule is that of layers without a window, and with a clamped one.
  for (const BuilderArguments& group :
       {one_layer(std::nullopt, false), one_layer(std::optional<int>(), true),
        one_layer(std::optional<int>(3), true)}) {
    for (const Json& one : cases) {
      const Route route = policy->make(group, {})->select(batch_of_record(one["requests"]));
      EXPECT_EQ(route.child, one["child"] == "image" ? 0 : 1) << one << " " << route.reason;
      EXPECT_EQ(route.forced_by.empty(), route.child == 1) << one;
    }
  }
}

TEST(RoutingRecord, H05NamesTheRequestThatForcedTheImageBackend) {
  const auto policy = mm_prefix_policy()->make(one_layer(std::nullopt, false), {});
  const Route route =
      policy->select(batch_of_record(Json::parse("[[1, 40, [[2, 5]]], [8, 8, [[2, 5]]]]")));
  ASSERT_EQ(route.forced_by.size(), 1U);
  EXPECT_EQ(route.forced_by[0].row, 1);
  EXPECT_EQ(route.forced_by[0].reason, "tokens 2..5 are inside image [2,5]");
}

// Behind an unclamped window the last token of an image shows what the window hides.
TEST(RoutingRecord, H05IsWiderBehindAnUnclampedWindow) {
  const auto policy = mm_prefix_policy()->make(one_layer(std::optional<int>(3), false), {});
  const auto child = [&](const char* requests) {
    return policy->select(batch_of_record(Json::parse(requests))).child;
  };
  EXPECT_EQ(child("[[4, 9, [[2, 5]]]]"), 0);
  EXPECT_EQ(child("[[1, 6, [[2, 5]]]]"), 0);
  EXPECT_EQ(child("[[4, 14, [[2, 5]]]]"), 1);
  EXPECT_EQ(child("[[5, 9, [[9, 12]]]]"), 1);
}

DescribedChild child_of(const Json& entry) {
  DescribedBackend backend;
  backend.blocks.sizes = block_sizes_of(entry);
  backend.update_in_forward = false;
  return {backend};
}

TEST(CompositeRecord, H06TwoBackendsOneCache) {
  const Json cases = hand_made_record("H06").at("cases");
  ASSERT_FALSE(cases.empty());
  for (const Json& one : cases) {
    const std::vector children = {child_of(one["children"][0]), child_of(one["children"][1])};
    const KernelBlocks blocks = describe_composite({}, std::nullopt, children).blocks;
    EXPECT_EQ(blocks.sizes, block_sizes_of(one["common"])) << one;
    for (const int rejected : one.value("rejected", std::vector<int>{})) {
      EXPECT_FALSE(blocks.support(rejected)) << one;
    }
    EXPECT_EQ(blocks.support(std::nullopt), !blocks.sizes.empty()) << one;
    if (one.contains("unspecified") && !one["unspecified"].is_null()) {
      EXPECT_EQ(blocks.preferred(1), one["unspecified"]) << one;
    }
  }
}

// A prefix of 4 that two requests share: one token behind 5 keys, two tokens behind 6 keys.
TEST(CascadeRecord, H23GateSaysNoForWhatThePrefixPassDoesNotDo) {
  CommonAttentionMetadata batch = batch_of_record(Json::parse("[[1, 5, []], [2, 6, []]]"));
  EXPECT_EQ(cascade_refusal(batch, 4, {}), std::nullopt);
  EXPECT_TRUE(cascade_refusal(batch, 4, {.sliding_window = true}));
  EXPECT_TRUE(cascade_refusal(batch, 4, {.alibi = true}));
  batch.mm_req_doc_ranges = {{0, {{1, 3}}}};
  EXPECT_TRUE(cascade_refusal(batch, 4, {}));
  // A prefix must not hold a query position: three tokens of five keys have a context of 2.
  EXPECT_TRUE(cascade_refusal(batch_of_record(Json::parse("[[3, 5, []]]")), 4, {}));
  EXPECT_FALSE(cascade_refusal(batch_of_record(Json::parse("[[1, 5, []]]")), 4, {}));
}

}  // namespace
}  // namespace attn
