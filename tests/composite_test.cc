// Composites as this library builds them: typed routes, any number of children, misuse. What they
// share with vLLM's is in the tables.
#include "attn/composite.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "attn/error.h"
#include "attn/vllm_error.h"
#include "tests/scripted_child.h"

namespace attn {
namespace {

using nlohmann::json;

const CommonAttentionMetadata kDecode = batch_of_lengths({1}, {5});

class Composite : public testing::Test {
 protected:
  AttentionBackendPtr child(const std::string& name, json members = json::object()) {
    return scripted_child(name, log, std::move(members));
  }
  AttentionBackendPtr constant(std::vector<AttentionBackendPtr> children, int selected,
                               int captured = 0, const std::string& name = "C") {
    CompositeOptions options;
    options.backend_name = options.class_name = name;
    return compose(std::move(children), constant_policy(selected, captured), options);
  }
  // Who was called, in order.
  std::string callers() {
    std::string names;
    for (const json& call : log->take()) names += call.at("child").get<std::string>();
    return names;
  }

  std::shared_ptr<CallLog> log = std::make_shared<CallLog>();
};

MetadataPtr build(const AttentionBackend& backend) {
  return backend.make_builder({})->build(0, kDecode, false);
}

std::string role_of(const AttentionMetadata& metadata) {
  return dynamic_cast<const ScriptedMetadata&>(leaf_of(metadata)).role();
}

TEST_F(Composite, NeedsTwoChildrenThatAreNotNullAndDiffer) {
  const RoutingPolicyPtr policy = mm_prefix_policy();
  const auto text = [&](std::vector<AttentionBackendPtr> children, RoutingPolicyPtr with) {
    return thrown<Error>([&] { compose(std::move(children), std::move(with), {}); });
  };
  EXPECT_EQ(text({}, policy), "a composite has 0 children, expected at least 2");
  EXPECT_EQ(text({child("A")}, policy), "a composite has 1 children, expected at least 2");
  EXPECT_EQ(text({child("A"), nullptr}, policy), "children[1] of a composite is null");
  EXPECT_EQ(text({child("A"), child("B"), child("A")}, policy),
            "children[2] of a composite is test.backends.ABackend, as an earlier child is");
  EXPECT_EQ(text({child("A"), child("B")}, nullptr), "the policy of a composite is null");
  CompositeOptions options;
  options.kernel_block_sizes = {16, 0};
  EXPECT_EQ(thrown<Error>([&] {
              compose({child("A"), child("B")}, policy, options);
            }),
            "kernel_block_sizes[1] is 0, expected at least 1");
}

TEST_F(Composite, RefusesAPolicyThatChoosesBetweenAnotherNumberOfChildren) {
  const std::vector<AttentionBackendPtr> three = {child("A"), child("B"), child("C")};
  EXPECT_EQ(thrown<Error>([&] { compose(three, mm_prefix_policy(), {}); }),
            "policy mm_prefix chooses between 2 children, the composite has 3");
  EXPECT_EQ(thrown<Error>([&] { compose(three, uniform_policy(1), {}); }),
            "policy uniform(1) chooses between 2 children, the composite has 3");
  EXPECT_NE(compose(three, constant_policy(2, 2), {}), nullptr);
}

TEST_F(Composite, RefusesAnyChildThatUpdatesTheCacheInItsForward) {
  for (std::size_t at = 0; at < 3; ++at) {
    std::vector<AttentionBackendPtr> children = {child("A"), child("B"), child("C")};
    children[at] = child("X", {{"forward_includes_kv_cache_update", true}});
    EXPECT_EQ(thrown<VllmError>([&] { compose(children, mm_prefix_policy(), {}); }),
              "Composite backends require separate KV cache updates");
  }
}

TEST_F(Composite, ChildrenWithoutACommonLayoutComposeAndRefuseWhenAsked) {
  const AttentionBackendPtr backend =
      constant({child("A", {{"layouts", {"LBHNC"}}}), child("B", {{"layouts", {"BLNHC"}}})}, 0);
  const DescribedBackend described = backend->describe({});
  EXPECT_EQ(thrown<VllmError>([&] { supported_layouts(described); }),
            "No KV cache layout satisfies every supported set: [['LBHNC'], ['BLNHC']].");
  const AttentionBackendPtr outer = constant({backend, child("Z")}, 0, 0, "Outer");
  EXPECT_EQ(thrown<VllmError>([&] { supported_layouts(outer->describe({})); }),
            "No KV cache layout satisfies every supported set: [['LBHNC'], ['BLNHC']].");
}

TEST_F(Composite, TheSameArgumentsGiveTheSameBackend) {
  const std::vector<AttentionBackendPtr> children = {child("A"), child("B")};
  CompositeOptions options;
  const AttentionBackendPtr first = compose(children, mm_prefix_policy(), options);
  EXPECT_EQ(compose(children, mm_prefix_policy(), options), first);
  options.head_sizes = {64};
  EXPECT_NE(compose(children, mm_prefix_policy(), options), first);
  EXPECT_NE(compose({children[1], children[0]}, mm_prefix_policy(), {}), first);
  EXPECT_NE(compose(children, constant_policy(0, 0), {}), first);
  EXPECT_EQ(children_of(*first), children);
  EXPECT_TRUE(children_of(*children[0]).empty());
}

TEST_F(Composite, ASelectedChildThatThereIsNotIsAnError) {
  for (const int selected : {-1, 2, 7}) {
    const AttentionBackendPtr backend = constant({child("A"), child("B")}, selected);
    const auto builder = backend->make_builder({});
    EXPECT_EQ(thrown<Error>([&] { builder->build(0, kDecode, false); }),
              fmt::format("policy constant({0}) of C selects child {0}, outside [0, 2)", selected));
  }
}

TEST_F(Composite, ACapturedChildThatThereIsNotIsAnErrorOfTheBuilder) {
  for (const int captured : {-1, 2}) {
    const AttentionBackendPtr backend = constant({child("A"), child("B")}, 0, captured);
    EXPECT_EQ(thrown<Error>([&] { backend->make_builder({}); }),
              fmt::format("policy constant(0) of C captures child {}, outside [0, 2)", captured));
  }
}

TEST_F(Composite, UnknownLayerNamesAreNamed) {
  const AttentionBackendPtr backend = compose({child("A"), child("B")}, mm_prefix_policy(), {});
  BuilderArguments arguments;
  arguments.model = {{"l0", {}, {}}};
  arguments.layer_names = {"l0", "l7"};
  try {
    backend->make_builder(arguments);
    FAIL();
  } catch (const VllmError& error) {
    EXPECT_EQ(error.type(), "KeyError");
    EXPECT_STREQ(error.what(), "the model has no layer \"l7\"");
  }
}

TEST_F(Composite, AChildThatBuildsNothingIsNamed) {
  const AttentionBackendPtr backend =
      constant({child("A"), child("B", {{"builder", {{"build_returns_none", true}}}})}, 1);
  EXPECT_EQ(thrown<Error>([&] { build(*backend); }), "child 1 of C, B, built no metadata");
}

TEST_F(Composite, RefusesMetadataThatItDidNotBuild) {
  const std::vector<AttentionBackendPtr> children = {child("A"), child("B")};
  const AttentionBackendPtr backend = constant(children, 1);
  const AttentionBackendPtr other = constant({children[0], child("D")}, 1, 0, "Other");
  const AttentionBackendPtr namesake = constant(children, 0);
  const auto impl = backend->make_impl({});
  const auto text = [&](const AttentionBackend& builder) {
    const MetadataPtr metadata = build(builder);
    log->take();
    std::string what = thrown<Error>([&] { impl->forward(*metadata, {}); });
    EXPECT_EQ(callers(), what.empty() ? "B" : "");
    return what;
  };
  EXPECT_EQ(text(*other),
            "metadata was built by Other (composite.module.Other), not by C (composite.module.C)");
  EXPECT_EQ(text(*children[1]),
            "metadata was built by B (test.backends.BBackend), not by C (composite.module.C)");
  EXPECT_EQ(text(*namesake), "metadata was built by another C than the one it is handed to");
  EXPECT_EQ(text(*backend), "");
}

TEST_F(Composite, WhoBuiltAnswersHoweverCompositesAreNested) {
  for (int bits = 0; bits < 8; ++bits) {
    const int inner_at = bits & 1;
    const int inner_child = bits >> 1 & 1;
    const int outer_child = bits >> 2;
    const AttentionBackendPtr inner = constant({child("X"), child("Y")}, inner_child, 0, "Inner");
    std::vector<AttentionBackendPtr> children = {inner, child("Z")};
    if (inner_at == 1) std::swap(children[0], children[1]);
    const AttentionBackendPtr outer = constant(children, outer_child, 0, "Outer");
    const MetadataPtr metadata = build(*outer);
    const std::string leaf = outer_child != inner_at ? "Z" : inner_child == 0 ? "X" : "Y";
    EXPECT_EQ(role_of(*metadata), leaf);
    const auto impl = outer->make_impl({});
    log->take();
    impl->forward(*metadata, {});
    EXPECT_EQ(callers(), leaf);
    const std::vector<RouteStep> route = route_of(*metadata);
    ASSERT_EQ(route.size(), outer_child == inner_at ? 2U : 1U);
    EXPECT_EQ(route[0].composite, outer.get());
    EXPECT_EQ(route[0].route.child, outer_child);
    if (route.size() == 2) {
      EXPECT_EQ(route[1].composite, inner.get());
      EXPECT_EQ(route[1].route.child, inner_child);
    }
  }
}

TEST_F(Composite, AnyOfThreeChildrenIsBuiltCapturedAndRun) {
  const json own_capture = {{"builder", {{"own_capture", true}}}};
  for (int selected = 0; selected < 3; ++selected) {
    const AttentionBackendPtr backend =
        constant({child("A", own_capture), child("B", own_capture), child("D", own_capture)},
                 selected, 2 - selected);
    const auto builder = backend->make_builder({});
    const auto impl = backend->make_impl({});
    log->take();
    impl->forward(*builder->build(0, kDecode, false), {});
    const std::string chosen(1, "ABD"[selected]);
    EXPECT_EQ(callers(), chosen + chosen);
    impl->forward(*builder->build_for_cudagraph_capture(kDecode), {});
    const std::string captured(1, "ABD"[2 - selected]);
    EXPECT_EQ(callers(), captured + captured);
    impl->forward(*builder->build_for_drafting(kDecode, 3), {});
    EXPECT_EQ(callers(), chosen + chosen);
  }
}

TEST_F(Composite, TheFirstChildWritesTheCacheAndTheLastOneSaysHowLseIs) {
  const AttentionBackendPtr backend = constant(
      {child("A", {{"impl", {{"supports_pcp", true}, {"attributes", {{"head_size", 64}}}}}}),
       child("B", {{"impl", {{"fused_rope", true}}}}),
       child("D", {{"impl",
                    {{"can_return_lse_for_decode", true},
                     {"lse_base_on_e", false},
                     {"attributes", {{"head_size", 96}}}}}})},
      1);
  const auto impl = backend->make_impl({});
  log->take();
  impl->do_kv_cache_update({});
  EXPECT_EQ(callers(), "A");
  impl->do_fused_update(FusedUpdate::kRope, {});
  EXPECT_EQ(callers(), "A");
  EXPECT_FALSE(impl->fused_update_supported(FusedUpdate::kRope));
  const ImplTraits traits = impl->traits();
  EXPECT_TRUE(traits.supports_pcp);
  EXPECT_TRUE(traits.can_return_lse_for_decode);
  EXPECT_FALSE(traits.lse_base_on_e);
  EXPECT_EQ(traits.head_size, 64);
  EXPECT_EQ(traits.num_heads, std::nullopt);
}

TEST_F(Composite, WhatIsNotForwardedSaysWhoRefuses) {
  const json updates = {
      {"builder",
       {{"supports_update_block_table", true}, {"supports_draft_decode_metadata_update", true}}}};
  const AttentionBackendPtr backend = constant({child("A", updates), child("B", updates)}, 0);
  const auto builder = backend->make_builder({});
  const MetadataPtr metadata = builder->build(0, kDecode, false);
  EXPECT_FALSE(builder->supports_update_block_table());
  EXPECT_FALSE(builder->supports_draft_decode_metadata_update());
  EXPECT_EQ(thrown<VllmError>([&] { builder->update_block_table(*metadata, {}, {}); }),
            "C does not support update_block_table");
  EXPECT_EQ(thrown<VllmError>([&] { builder->update_draft_decode_metadata(*metadata); }),
            "C does not support update_draft_decode_metadata");
  EXPECT_EQ(thrown<VllmError>(
                [&] { backend->make_impl({})->do_fused_update(FusedUpdate::kQkNormMrope, {}); }),
            "C does not support do_qk_norm_mrope_kvcache_update");
}

TEST_F(Composite, TheWorkspaceOfTheFirstProviderGoesToAllThatTakeOne) {
  const json gives = {{"builder", {{"has_get_workspace", true}}}};
  const json takes = {{"builder", {{"has_set_workspace", true}}}};
  const AttentionBackendPtr inner = constant({child("A", takes), child("B")}, 0, 0, "Inner");
  const AttentionBackendPtr backend = constant({inner, child("D", gives), child("E", takes)}, 0);
  const auto builder = backend->make_builder({});
  EXPECT_TRUE(builder->provides_workspace());
  log->take();
  const WorkspacePtr buffer = builder->workspace();
  EXPECT_EQ(dynamic_cast<const NamedWorkspace&>(*buffer).name, "workspace-of-D");
  EXPECT_EQ(callers(), "DAE");
  EXPECT_EQ(constant({child("A"), child("B")}, 0)->make_builder({})->workspace(), nullptr);
}

TEST_F(Composite, AFailingChildKeepsTheErrorBehindTheOneOfTheComposite) {
  const AttentionBackendPtr backend = constant(
      {child("A"), child("B"),
       child("D", {{"impl", {{"raises", {{"type", "TypeError"}, {"text", "no sinks"}}}}}})},
      0);
  try {
    backend->make_impl({});
    FAIL();
  } catch (const VllmError& error) {
    EXPECT_EQ(error.type(), "ValueError");
    EXPECT_STREQ(error.what(),
                 "Causal attention backend D does not accept the attention arguments required by "
                 "the general backend A: no sinks");
    EXPECT_THROW(std::rethrow_if_nested(error), VllmError);
  }
}

TEST_F(Composite, KernelBlockSizesSetInAllNestedBuilders) {
  const AttentionBackendPtr inner = constant({child("A"), child("B")}, 0, 0, "Inner");
  const auto builder = constant({inner, child("D")}, 0)->make_builder({});
  EXPECT_EQ(builder->kernel_block_size(), std::nullopt);
  builder->set_kernel_block_size(32);
  EXPECT_EQ(builder->kernel_block_size(), 32);
}

// Every question that a description answers for one value at a time, asked of three children and of
// their composite.
TEST_F(Composite, AcceptsWhatAllChildrenAccept) {
  const std::vector<AttentionBackendPtr> children = {
      child("A", {{"head_rule", {{"min", 32}, {"max", 256}, {"multiple_of", 16}}},
                  {"dtypes", {"float32", "bfloat16", "float16"}},
                  {"kv_cache_dtypes", json::array()},
                  {"kernel_block_sizes", {{{"multiple_of", 16}}, 24}},
                  {"flags", {{"supports_sliding_window", true}, {"supports_mm_prefix", true}}}}),
      child("B", {{"head_rule", {{"multiple_of", 24}}},
                  {"dtypes", {"bfloat16", "float32"}},
                  {"kv_cache_dtypes", {"fp8", "auto", "nvfp4"}},
                  {"kernel_block_sizes", {{{"multiple_of", 8}}}},
                  {"flags", {{"supports_sliding_window", true}}},
                  {"min_capability", {8, 0}}}),
      child("D", {{"head_sizes", {48, 80, 96, 144, 512}},
                  {"kv_cache_dtypes", {"nvfp4", "fp8"}},
                  {"kernel_block_sizes", {48, 24, {{"multiple_of", 96}}}},
                  {"flags", {{"supports_sliding_window", true}, {"supports_kv_connector", false}}},
                  {"max_capability", {10, 0}}})};
  const AttentionBackendPtr backend = constant(children, 0);
  for (const DeviceCapability capability : {DeviceCapability{7, 5}, {8, 0}, {10, 0}, {10, 3}}) {
    const DescribedBackend composite = backend->describe(capability);
    std::vector<DescribedBackend> all;
    all.reserve(children.size());
    for (const AttentionBackendPtr& one : children) all.push_back(one->describe(capability));
    const auto by_all = [&](const auto& question) {
      return std::all_of(all.begin(), all.end(), question);
    };
    for (int size = 1; size < 600; ++size) {
      EXPECT_EQ(composite.heads.allow(size),
                by_all([&](const DescribedBackend& b) { return b.heads.allow(size); }))
          << size;
    }
    for (int dtype = 0; dtype < kNumCacheDTypes; ++dtype) {
      const auto value = static_cast<CacheDType>(dtype);
      EXPECT_EQ(composite.kv.accepted.contains(value),
                by_all([&](const DescribedBackend& b) { return b.kv.accepted.contains(value); }));
    }
    EXPECT_EQ(composite.capability, by_all([](const DescribedBackend& b) { return b.capability; }));
    EXPECT_EQ(composite.sliding_window, true);
    EXPECT_EQ(composite.mm_prefix, true) << "constant(0) sends images to A only";
    EXPECT_EQ(composite.kv_connector, true) << "vLLM's rule";
    EXPECT_EQ(composite.dtypes, std::vector{DType::kBF16}) << "in the order of the first child";
    EXPECT_EQ(to_string(composite.blocks.sizes), "[48, MultipleOf(96), 24]");
  }
}

TEST_F(Composite, ConnectorAndAttentionTypesOfAllChildrenOnRequest) {
  const std::vector<AttentionBackendPtr> children = {
      child("A", {{"attn_types", {"encoder", "decoder", "encoder_only"}}}),
      child("B", {{"attn_types", {"encoder_only", "encoder"}},
                  {"flags", {{"supports_kv_connector", false}}}})};
  CompositeOptions options;
  options.connector_and_types_of_children = true;
  const DescribedBackend described = compose(children, mm_prefix_policy(), options)->describe({});
  EXPECT_FALSE(described.kv_connector);
  EXPECT_EQ(described.attn_types,
            (std::vector{AttentionType::kEncoder, AttentionType::kEncoderOnly}));
}

TEST_F(Composite, FindsVariantsInNestedComposites) {
  const AttentionBackendPtr y = child("Y");
  const AttentionBackendPtr inner = constant({child("X"), y}, 0, 0, "Inner");
  const auto impl = constant({child("Z"), inner}, 0, 0, "Outer")->make_impl({});
  const AttentionImpl* found = find_attention_impl_variant(*impl, *y);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(&found->backend(), y.get());
  EXPECT_EQ(&find_attention_impl_variant(*impl, *inner)->backend(), inner.get());
  EXPECT_EQ(find_attention_impl_variant(*impl, *child("W")), nullptr);
}

}  // namespace
}  // namespace attn
