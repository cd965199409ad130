// What composites declare: the sets that their children have in common, found by asking every child
// about every probe; and captures that only go where a graph is supported.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <sstream>

#include "attn/backend_check.h"
#include "attn/composite.h"
#include "attn/error.h"
#include "attn/random.h"
#include "core/contains.h"
#include "property_tests/composite_parts.h"
#include "property_tests/replay_line.h"

namespace attn::property_tests {
namespace {

// Small draws from one seed.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  int below_n(int n) {
    const Words words = random_words(seed_, next_++, RandomTensor::kConfiguration, 4);
    return static_cast<int>(below(words, static_cast<std::uint32_t>(n)));
  }
  bool coin() { return below_n(2) == 0; }
  template <class T>
  std::vector<T> some_of(const std::vector<T>& all) {
    std::vector<T> some;
    for (const T& item : all) {
      if (below_n(4) != 0) some.push_back(item);
    }
    return some;
  }
  template <class T>
  T one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(below_n(static_cast<int>(all.size())))];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
};

const std::vector<DType> kDTypes = {DType::kF16, DType::kBF16, DType::kF32};
const std::vector<CacheDType> kCacheDTypes = {CacheDType::kAuto, CacheDType::kFloat16,
                                              CacheDType::kFp8, CacheDType::kFp8E5M2,
                                              CacheDType::kNvfp4};
const std::vector<int> kHeadSizes = {24, 32, 64, 80, 96, 128, 192, 256, 512};
const std::vector<int> kBlockSizes = {1, 8, 16, 24, 32, 48, 64, 96, 128, 192};

DescribedBackend random_description(Draw& draw, std::string name) {
  DescribedBackend b;
  b.name = std::move(name);
  b.heads.min = draw.one_of<int>({1, 32, 64});
  b.heads.max = draw.one_of<int>({128, 256, 1024});
  b.heads.multiple_of = draw.one_of<int>({1, 8, 32});
  if (draw.coin()) b.heads.only = draw.some_of(kHeadSizes);
  b.dtypes = draw.some_of(kDTypes);
  b.kv.accepted = CacheDTypeSet{};
  for (const CacheDType dtype : draw.some_of(kCacheDTypes)) {
    b.kv.accepted = b.kv.accepted.with(dtype);
  }
  if (draw.coin()) b.kv.accepted = b.kv.accepted.with(std::nullopt);
  b.blocks.sizes.clear();
  for (int i = draw.below_n(4); i > 0; --i) {
    b.blocks.sizes.push_back({draw.one_of<int>({8, 16, 24, 64}), draw.coin()});
  }
  for (bool DescribedBackend::*flag :
       {&DescribedBackend::capability, &DescribedBackend::sink, &DescribedBackend::mm_prefix,
        &DescribedBackend::per_head_quant_scales, &DescribedBackend::sliding_window,
        &DescribedBackend::rswa, &DescribedBackend::non_causal, &DescribedBackend::batch_invariance,
        &DescribedBackend::kv_connector, &DescribedBackend::pcp, &DescribedBackend::dcp,
        &DescribedBackend::query_lens_mismatch}) {
    b.*flag = draw.below_n(4) != 0;
  }
  b.attn_types = draw.some_of<AttentionType>(
      {AttentionType::kDecoder, AttentionType::kEncoder, AttentionType::kEncoderOnly});
  b.update_in_forward = false;
  b.graph = static_cast<GraphSupport>(draw.below_n(4));
  return b;
}

class StubMetadata final : public AttentionMetadata {
 public:
  explicit StubMetadata(const AttentionBackend& backend) : backend_(backend) {}
  const AttentionBackend& backend() const override { return backend_; }

 private:
  const AttentionBackend& backend_;
};

class StubBuilder final : public AttentionMetadataBuilder {
 public:
  explicit StubBuilder(const AttentionBackend& backend) : backend_(backend) {}
  const AttentionBackend& backend() const override { return backend_; }
  MetadataPtr build(int, const CommonAttentionMetadata&, bool) override {
    return std::make_shared<StubMetadata>(backend_);
  }

 private:
  const AttentionBackend& backend_;
};

// Says what it is told to say, and answers nothing.
class Stub final : public AttentionBackend {
 public:
  explicit Stub(DescribedBackend says) : says_(std::move(says)) {}
  std::string name() const override { return says_.name; }
  ClassName full_class_name() const override { return {"stub", says_.name}; }
  DescribedBackend describe(const std::optional<DeviceCapability>&) const override { return says_; }
  BlockSizes kernel_block_sizes(const KvCacheSpec&) const override { return says_.blocks.sizes; }
  GraphSupport cudagraph_support(const BuilderArguments&) const override { return says_.graph; }
  std::unique_ptr<AttentionMetadataBuilder> make_builder(const BuilderArguments&) const override {
    return std::make_unique<StubBuilder>(*this);
  }
  std::unique_ptr<AttentionImpl> make_impl(const ImplArguments&) const override {
    throw Error("a stub answers nothing");
  }

 private:
  DescribedBackend says_;
};

AttentionSelectorConfig random_config(Draw& draw) {
  AttentionSelectorConfig config;
  config.head_size = draw.one_of(kHeadSizes);
  config.dtype = draw.one_of(kDTypes);
  if (draw.coin()) config.kv_cache_dtype = draw.one_of(kCacheDTypes);
  if (draw.below_n(4) != 0) config.block_size = draw.one_of(kBlockSizes);
  for (bool AttentionSelectorConfig::*wish :
       {&AttentionSelectorConfig::use_mla, &AttentionSelectorConfig::has_sink,
        &AttentionSelectorConfig::use_sparse, &AttentionSelectorConfig::use_mm_prefix,
        &AttentionSelectorConfig::use_per_head_quant_scales,
        &AttentionSelectorConfig::has_sliding_window, &AttentionSelectorConfig::use_non_causal,
        &AttentionSelectorConfig::use_batch_invariant, &AttentionSelectorConfig::use_kv_connector,
        &AttentionSelectorConfig::use_pcp, &AttentionSelectorConfig::use_adaptive_verification,
        &AttentionSelectorConfig::use_dcp, &AttentionSelectorConfig::use_rswa}) {
    config.*wish = draw.below_n(5) == 0;
  }
  config.attn_type = {
      draw.one_of<AttentionType>({AttentionType::kDecoder, AttentionType::kEncoderOnly}), true};
  return config;
}

// A block size by the common list: entries pairwise, least common multiples of multiples, plain
// sizes where they are multiples or equal.
std::vector<BlockSize> common_blocks(const std::vector<BlockSize>& a,
                                     const std::vector<BlockSize>& b) {
  std::vector<BlockSize> common;
  for (const BlockSize x : a) {
    for (const BlockSize y : b) {
      if (x.multiples && y.multiples) {
        common.push_back(multiple_of(x.size * y.size / std::gcd(x.size, y.size)));
      } else if (x.multiples ? y.size % x.size == 0
                             : (y.multiples ? x.size % y.size == 0 : x.size == y.size)) {
        common.push_back({x.multiples ? y.size : x.size, false});
      }
    }
  }
  return common;
}

struct Asked {
  std::vector<DescribedBackend> children;
  bool of_children = false;  // connectors and types are the children's

  template <class Holds>
  bool all(const Holds& holds) const {
    return std::all_of(children.begin(), children.end(), holds);
  }
  bool all(bool DescribedBackend::*flag) const {
    return all([&](const DescribedBackend& child) { return child.*flag; });
  }
};

// The reasons of a composite under mm_prefix, from the children one by one, in vLLM's order.
std::vector<std::string> brute_force(const Asked& asked, const AttentionSelectorConfig& config) {
  std::vector<std::string> reasons;
  const auto expect = [&](bool holds, std::string reason) {
    if (!holds) reasons.push_back(std::move(reason));
  };
  using D = DescribedBackend;
  expect(asked.all([&](const D& d) { return d.heads.allow(config.head_size); }),
         "head_size not supported");
  expect(asked.all([&](const D& d) { return contains(d.dtypes, config.dtype); }),
         "dtype not supported");
  expect(asked.all([&](const D& d) { return d.kv.accepted.contains(config.kv_cache_dtype); }),
         "kv_cache_dtype not supported");
  std::vector<BlockSize> blocks = asked.children[0].blocks.sizes;
  for (std::size_t i = 1; i < asked.children.size(); ++i) {
    blocks = common_blocks(blocks, asked.children[i].blocks.sizes);
  }
  expect(!blocks.empty() &&
             (!config.block_size ||
              std::any_of(blocks.begin(), blocks.end(),
                          [&](BlockSize b) { return *config.block_size % b.size == 0; })),
         "block_size not supported");
  expect(!config.use_mm_prefix || asked.children[0].mm_prefix,
         "partial multimodal token full attention not supported");
  expect(!config.use_mla, "MLA not supported");
  expect(!config.has_sink, "attention sinks not supported");
  expect(!config.use_sparse, "sparse not supported");
  expect(!config.use_per_head_quant_scales, "per-head quant scales not supported");
  expect(asked.all(&D::capability), "compute capability not supported");
  const AttentionType type = config.attn_type.type;
  const bool types = asked.of_children
                         ? asked.all([&](const D& d) { return contains(d.attn_types, type); })
                         : type == AttentionType::kDecoder;
  expect(types, fmt::format("attention type {} not supported", name(type)));
  expect(!config.has_sliding_window || asked.all(&D::sliding_window),
         "sliding window not supported");
  expect(!config.use_rswa || asked.all(&D::rswa), "R-SWA not supported");
  expect(!config.use_non_causal, "non-causal attention not supported");
  expect(!(config.use_mla && config.use_non_causal && config.use_dcp),
         "non-causal MLA attention with DCP not supported");
  expect(!config.use_batch_invariant, "batch invariance not supported");
  expect(!config.use_kv_connector || !asked.of_children || asked.all(&D::kv_connector),
         "KV connector not supported");
  expect(!config.use_pcp, "PCP not supported");
  expect(!config.use_dcp, "DCP not supported");
  expect(!config.use_adaptive_verification,
         "device-cpu query lens mismatch not supported, this is needed for adaptive verification");
  return reasons;
}

std::vector<std::string> validated(const DescribedBackend& backend,
                                   const AttentionSelectorConfig& config) {
  const BackendCheck check(backend);
  const SelectorFacts facts;
  return reason_texts(check.validate(Requirements(config), facts), check, facts, config);
}

// Any number of children, of which the first alone sees image masks.
RoutingPolicyPtr images_to_the_first() {
  RoutingTable table;
  table.name = "images to the first";
  table.uses_mm_prefix = {true, false, false, false};
  return by_table_policy(std::move(table));
}

AttentionBackendPtr compose_stubs(const Asked& asked, const RoutingPolicyPtr& policy) {
  std::vector<AttentionBackendPtr> stubs;
  for (const DescribedBackend& child : asked.children) {
    stubs.push_back(std::make_shared<Stub>(child));
  }
  CompositeOptions options;
  options.connector_and_types_of_children = asked.of_children;
  return compose(std::move(stubs), policy, options);
}

Asked random_children(Draw& draw) {
  Asked asked;
  const int count = 2 + draw.below_n(2);
  for (int i = 0; i < count; ++i) {
    asked.children.push_back(random_description(draw, fmt::format("CHILD_{}", i)));
  }
  asked.of_children = draw.coin();
  return asked;
}

void check_seeds(const std::string& claim, const std::function<void(std::uint64_t)>& holds) {
  const rc::detail::TestParams& params = rc::detail::configuration().testParams;
  std::ostringstream message;
  const auto result = rc::detail::checkTestable(
      [&] { holds(*rc::gen::noShrink(rc::gen::arbitrary<std::uint64_t>())); },
      rc::detail::TestMetadata{claim, claim}, params);
  rc::detail::printResultMessage(result, message);
  EXPECT_TRUE(result.is<rc::detail::SuccessResult>()) << message.str() << "\n" << replay_line();
}

TEST(Declaration, IsWhatTheChildrenHaveInCommonWithReasonsInOrder) {
  int accepted = 0;
  check_seeds("IsWhatTheChildrenHaveInCommonWithReasonsInOrder", [&](std::uint64_t seed) {
    Draw draw(seed);
    const Asked asked = random_children(draw);
    const DescribedBackend declared = compose_stubs(asked, images_to_the_first())->describe({});
    for (int probe = 0; probe < 20; ++probe) {
      const AttentionSelectorConfig config = random_config(draw);
      const std::vector<std::string> reasons = validated(declared, config);
      if (reasons != brute_force(asked, config)) {
        RC_FAIL(fmt::format("[{}], one by one [{}]", fmt::join(reasons, "; "),
                            fmt::join(brute_force(asked, config), "; ")));
      }
      if (!reasons.empty()) continue;
      ++accepted;
      for (std::size_t i = 0; i < asked.children.size(); ++i) {
        AttentionSelectorConfig own = config;
        if (i != 0) own.use_mm_prefix = false;  // only child 0 is sent images
        std::vector<std::string> against = validated(asked.children[i], own);
        // What the interface asks of a composite and not of its children.
        std::erase(against, "KV connector not supported");
        std::erase_if(against, [](const auto& text) { return text.starts_with("attention type"); });
        if (!against.empty())
          RC_FAIL(fmt::format("child {} refuses: {}", i, fmt::join(against, "; ")));
      }
    }
  });
  EXPECT_GT(accepted, 0);
}

TEST(Declaration, CapturesGoWhereAGraphIsSupported) {
  int captured = 0;
  check_seeds("CapturesGoWhereAGraphIsSupported", [&](std::uint64_t seed) {
    Draw draw(seed);
    Asked asked = random_children(draw);
    asked.children.resize(2);
    BuilderArguments group;
    group.spec.head_size = 16 + draw.below_n(2);
    group.layer_names = {"layers.0"};
    group.model = {{"layers.0", std::optional<int>(draw.coin() ? std::optional(4) : std::nullopt),
                    draw.coin()}};
    CommonAttentionMetadata batch;
    batch.query_start_loc = batch.query_start_loc_cpu = {0, 1};
    batch.seq_lens = {1};
    batch.num_reqs = batch.num_actual_tokens = batch.max_query_len = batch.max_seq_len = 1;
    batch.block_table = {1, {0}};
    batch.slot_mapping = {0};
    for (const NamedPolicy& policy : policies_of_two()) {
      const AttentionBackendPtr composite = compose_stubs(asked, policy.policy);
      const GraphSupport level = composite->cudagraph_support(group);
      const GraphSupport weakest = std::min({asked.children[0].graph, asked.children[1].graph,
                                             policy.policy->cudagraph_support(group)});
      RC_ASSERT(level == weakest);
      const MetadataPtr metadata =
          composite->make_builder(group)->build_for_cudagraph_capture(batch);
      const auto child = static_cast<std::size_t>(route_of(*metadata).at(0).route.child);
      RC_ASSERT(leaf_of(*metadata).backend().name() == asked.children.at(child).name);
      RC_ASSERT(static_cast<int>(child) == policy.policy->capture_child(group));
      RC_ASSERT(level <= asked.children[child].graph);
      if (level != GraphSupport::kNever) ++captured;
    }
  });
  EXPECT_GT(captured, 0);
}

}  // namespace
}  // namespace attn::property_tests
