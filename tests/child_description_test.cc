// Backends described in JSON.
#include "core/child_description.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "attn/backend_check.h"
#include "attn/error.h"

namespace attn {
namespace {

using nlohmann::json;

ChildDescription described(const json& members, std::span<const std::string_view> further = {}) {
  const JsonDocument document(members.dump(), "child");
  return child_description_from(document.root(), further);
}
json named(json members) {
  members.update({{"name", "MINE"}, {"module", "my.attn"}, {"class", "MyBackend"}});
  return members;
}

std::vector<std::string> reasons(const json& members, const AttentionSelectorConfig& config,
                                 const std::optional<DeviceCapability>& capability) {
  SelectorFacts facts;
  facts.capability = capability;
  const BackendCheck check(described_on(described(named(members)), capability));
  return reason_texts(check.validate(Requirements(config), facts), check, facts, config);
}

AttentionSelectorConfig head(int size) {
  AttentionSelectorConfig config;
  config.head_size = size;
  return config;
}

TEST(ChildDescription, MissingMembersAreThoseOfTheBaseClass) {
  const ChildDescription child = described(named(json::object()));
  const DescribedBackend base;
  EXPECT_EQ(child.backend.name, "MINE");
  EXPECT_EQ(child.backend.dtypes, base.dtypes);
  EXPECT_EQ(child.backend.kv.accepted, base.kv.accepted);
  EXPECT_EQ(child.backend.blocks.sizes, base.blocks.sizes);
  EXPECT_EQ(child.backend.attn_types, base.attn_types);
  EXPECT_TRUE(child.backend.query_lens_mismatch);
  EXPECT_TRUE(child.backend.kv_connector);
  EXPECT_TRUE(child.backend.update_in_forward);
  EXPECT_EQ(child.backend.graph, GraphSupport::kNever);
  EXPECT_TRUE(child.impl.has_kv_cache_update);
  EXPECT_TRUE(child.impl.traits.lse_base_on_e);
}

TEST(ChildDescription, MethodsThatAskOthersFollowThemUnlessReplaced) {
  const auto flags = [](const json& members) { return described(named(members)).backend; };
  EXPECT_FALSE(flags({{"flags", {{"is_ssm", true}}}}).query_lens_mismatch);
  EXPECT_TRUE(
      flags({{"flags", {{"is_ssm", true}, {"supports_device_cpu_query_lens_mismatch", true}}}})
          .query_lens_mismatch);
  EXPECT_TRUE(flags({{"impl", {{"supports_dcp", true}}}}).dcp);
  EXPECT_FALSE(flags({{"impl", {{"supports_dcp", true}}}}).pcp);
  EXPECT_TRUE(flags({{"impl", {{"supports_pcp", true}}}}).pcp);
  EXPECT_FALSE(flags({{"impl", {{"supports_dcp", true}, {"not_implemented", true}}}}).dcp);
  EXPECT_TRUE(
      flags({{"impl", {{"not_implemented", true}}}, {"flags", {{"supports_dcp", true}}}}).dcp);
  EXPECT_TRUE(flags({{"builder", {{"supports_non_causal_multi_token_dcp", true}}}}).non_causal_dcp);
  EXPECT_FALSE(flags({{"builder", {{"supports_non_causal_multi_token_dcp", true}}},
                      {"flags", {{"supports_non_causal_dcp", false}}}})
                   .non_causal_dcp);
}

TEST(ChildDescription, CapabilityBoundsAreInclusiveAndBindDevicesThatHaveOne) {
  const json bounds = {{"min_capability", {8, 6}}, {"max_capability", {9, 0}}};
  const std::vector<std::string> none;
  const std::vector<std::string> refused = {"compute capability not supported"};
  EXPECT_EQ(reasons(bounds, head(64), DeviceCapability{8, 0}), refused);
  EXPECT_EQ(reasons(bounds, head(64), DeviceCapability{8, 6}), none);
  EXPECT_EQ(reasons(bounds, head(64), DeviceCapability{9, 0}), none);
  EXPECT_EQ(reasons(bounds, head(64), DeviceCapability{9, 1}), refused);
  EXPECT_EQ(reasons(bounds, head(64), std::nullopt), none);
}

TEST(ChildDescription, RulesReplaceLists) {
  const json rule = {{"head_sizes", {40}}, {"head_rule", {{"min", 64}, {"multiple_of", 8}}}};
  EXPECT_EQ(reasons(rule, head(40), {}), std::vector<std::string>{"head_size not supported"});
  EXPECT_TRUE(reasons(rule, head(72), {}).empty());
  EXPECT_EQ(described(named(rule)).backend.heads.declared, std::vector{40});
  const KernelBlocks blocks =
      described(named({{"kernel_block_sizes", {16, 64}}, {"block_rule", 32}})).backend.blocks;
  EXPECT_FALSE(blocks.support(16));
  EXPECT_TRUE(blocks.support(32));
  EXPECT_TRUE(blocks.support({}));
  EXPECT_EQ(blocks.preferred(48), 16);
  EXPECT_EQ(blocks.preferred(96), 96);
}

TEST(ChildDescription, AnEmptyListOfCacheDTypesAcceptsAllAndOneOfDTypesNone) {
  AttentionSelectorConfig config = head(64);
  config.kv_cache_dtype = CacheDType::kOctaveK3V3;
  EXPECT_TRUE(reasons({{"kv_cache_dtypes", json::array()}}, config, {}).empty());
  EXPECT_EQ(reasons({{"kv_cache_dtypes", {"fp8"}}}, config, {}),
            std::vector<std::string>{"kv_cache_dtype not supported"});
  EXPECT_EQ(reasons({{"dtypes", json::array()}}, head(64), {}),
            std::vector<std::string>{"dtype not supported"});
}

TEST(ChildDescription, TheFirstRuleWhoseFieldHasTheValueGivesTheReason) {
  const json rules = {{"combination_rules",
                       {{{"field", "major"}, {"equals", 9}, {"reason", "not on Hopper"}},
                        {{"field", "block_size"}, {"equals", nullptr}, {"reason", "block size?"}},
                        {{"field", "head_size"}, {"equals", 64}, {"reason", ""}}}}};
  AttentionSelectorConfig config = head(64);
  EXPECT_EQ(reasons(rules, config, DeviceCapability{9, 0}),
            std::vector<std::string>{"not on Hopper"});
  EXPECT_EQ(reasons(rules, config, DeviceCapability{8, 0}),
            std::vector<std::string>{"block size?"});
  config.block_size = 16;
  EXPECT_EQ(reasons(rules, config, DeviceCapability{8, 0}), std::vector<std::string>{""});
  EXPECT_TRUE(reasons(
                  rules,
                  [] {
                    auto other = head(80);
                    other.block_size = 16;
                    return other;
                  }(),
                  DeviceCapability{8, 0})
                  .empty());
}

TEST(ChildDescription, SpecChangesSetTheirFieldsAlone) {
  KvCacheSpec spec;
  spec.block_size = 64;
  KvCacheSpec expected = spec;
  expected.num_head_slots = 16;
  expected.head_size = 576;
  const json changes = {{"spec_changes", {{"num_head_slots", 16}, {"head_size", 576}}}};
  EXPECT_EQ(customized(described(named(changes)), spec), expected);
}

TEST(ChildDescription, FurtherKeysBelongToTheCaller) {
  constexpr std::string_view kFurther[] = {"format", "priority"};
  EXPECT_NO_THROW(described(named({{"format", "x"}, {"priority", nullptr}}), kFurther));
  EXPECT_THROW(described(named({{"format", "x"}})), Error);
}

struct Bad {
  const char* members;
  const char* text;
};

TEST(ChildDescription, RefusesWhatItDoesNotKnowByItsPath) {
  const Bad cases[] = {
      {R"({"name":"A","module":"m"})", "child.class is missing"},
      {R"({"name":"","module":"m","class":"C"})", "child.name is \"\", expected a name"},
      {R"({"name":"A","module":"m","class":"C","hed_sizes":[]})",
       "child has the unknown key \"hed_sizes\""},
      {R"({"name":"A","module":"m","class":"C","dtypes":["fp16"]})",
       "child.dtypes[0] is \"fp16\", expected float16, bfloat16 or float32"},
      {R"({"name":"A","module":"m","class":"C","kv_cache_dtypes":["fp9"]})",
       "child.kv_cache_dtypes[0] is \"fp9\", expected a cache dtype or null"},
      {R"({"name":"A","module":"m","class":"C","kv_cache_dtypes":[null]})",
       "child.kv_cache_dtypes[0] is null, expected a cache dtype"},
      {R"({"name":"A","module":"m","class":"C","head_sizes":[0]})",
       "child.head_sizes[0] is 0, expected an integer >= 1"},
      {R"({"name":"A","module":"m","class":"C","head_rule":{"multiple_of":0}})",
       "child.head_rule.multiple_of is 0, expected an integer >= 1"},
      {R"({"name":"A","module":"m","class":"C","block_rule":0})",
       "child.block_rule is 0, expected an integer >= 1"},
      {R"({"name":"A","module":"m","class":"C","min_capability":[9]})",
       "child.min_capability is an array, expected [major, minor] or null"},
      {R"({"name":"A","module":"m","class":"C","flags":{"supports_sinks":true}})",
       "child.flags.supports_sinks is true, expected a method of a backend as key"},
      {R"({"name":"A","module":"m","class":"C","flags":{"supports_sink":1}})",
       "child.flags.supports_sink is 1, expected true or false"},
      {R"({"name":"A","module":"m","class":"C","layouts":["NHD"]})",
       "child.layouts[0] is \"NHD\", expected a KV cache layout such as LBNHC"},
      {R"({"name":"A","module":"m","class":"C","builder":{"cudagraph_support":"SOMETIMES"}})",
       "child.builder.cudagraph_support is \"SOMETIMES\", expected NEVER, "
       "UNIFORM_SINGLE_TOKEN_DECODE, UNIFORM_BATCH or ALWAYS"},
      {R"({"name":"A","module":"m","class":"C","impl":{"raise":{}}})",
       "child.impl has the unknown key \"raise\""},
      {R"({"name":"A","module":"m","class":"C","spec_changes":{"dtype":1}})",
       "child.spec_changes has the unknown key \"dtype\""},
      {R"({"name":"A","module":"m","class":"C","combination_rules":[{"field":"dtype","equals":1,"reason":"r"}]})",
       "child.combination_rules[0].field is \"dtype\", expected one of head_size, kv_cache_dtype, "
       "block_size, has_sink, use_mm_prefix, major"},
      {R"({"name":"A","module":"m","class":"C","combination_rules":[{"field":"has_sink","equals":1,"reason":"r"}]})",
       "child.combination_rules[0].equals is 1, expected true or false"}};
  for (const Bad& bad : cases) {
    try {
      const JsonDocument document(bad.members, "child");
      child_description_from(document.root());
      ADD_FAILURE() << bad.members;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), bad.text);
    }
  }
}

}  // namespace
}  // namespace attn
