// Selection among backends that run, and described backends that they stand for.
#include "attn/own_selector.h"

#include <gtest/gtest.h>

#include <functional>

#include "attn/cpu_backend.h"
#include "attn/described_executable.h"
#include "attn/error.h"
#include "attn/reference.h"
#include "selector/vllm_backends.h"
#include "tests/small_problem.h"

namespace attn {
namespace {

using Texts = std::vector<std::string>;

constexpr std::uint32_t bit(Feature feature) { return static_cast<std::uint32_t>(feature); }

// Everything that a row can say yes to.
Capabilities everything() {
  Capabilities c;
  c.operations = {OpKind::kAttention, OpKind::kMla, OpKind::kMlaSparse};
  c.query_dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  c.kv_dtypes = {DType::kF32,      DType::kF16,    DType::kBF16,
                 DType::kF8E4M3FN, DType::kF8E5M2, DType::kI4};
  c.kv_encodings = {KvEncoding::kPlain, KvEncoding::kPerTokenHead, KvEncoding::kNvfp4,
                    KvEncoding::kFp8DsMla};
  c.kv_layouts = {KvLayout::kVarlen, KvLayout::kPaged, KvLayout::kPacked};
  c.features = ~0u;
  c.output_dtypes = {DType::kF32};
  c.honours_dcp = true;
  c.batch_invariant = true;
  return c;
}

class FakeBackend final : public Backend {
 public:
  FakeBackend(std::string name, Capabilities capabilities)
      : name_(std::move(name)), capabilities_(std::move(capabilities)) {}
  std::string_view name() const override { return name_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  PrecisionContract contract(const AttentionProblem&) const override { return {"fp32"}; }
  std::size_t workspace_bytes(const AttentionProblem&) const override { return 0; }
  std::unique_ptr<Plan> prepare(const AttentionProblem&, Workspace) const override {
    return nullptr;
  }

 private:
  std::string name_;
  Capabilities capabilities_;
};

std::shared_ptr<const Backend> fake(const std::string& name, const Capabilities& capabilities) {
  return std::make_shared<FakeBackend>(name, capabilities);
}

Texts row_reasons(const Capabilities& capabilities, const AttentionSelectorConfig& config) {
  const OwnSelector selector({{"FAKE", fake("FAKE", capabilities), ""}});
  return selector.reasons(*selector.find("FAKE"), config);
}

// A feature as a layer asks for it and as a problem uses it.
struct Wish {
  std::string name;
  std::function<void(Capabilities&)> forget;
  std::function<void(AttentionSelectorConfig&)> ask;
  std::function<void(SmallProblem&)> use;
  std::string reason;  // of the row
};

template <class T>
void drop(std::vector<T>& list, T item) {
  std::erase(list, item);
}

void without(Capabilities& c, Feature feature) { c.features &= ~bit(feature); }

const Wish kWishes[] = {
    {"SlidingWindow", [](Capabilities& c) { without(c, Feature::kSlidingWindow); },
     [](AttentionSelectorConfig& config) { config.has_sliding_window = true; },
     [](SmallProblem& p) { p.op.mask.window_left = 1; }, "sliding window not supported"},
    {"Sinks", [](Capabilities& c) { without(c, Feature::kSinks); },
     [](AttentionSelectorConfig& config) { config.has_sink = true; },
     [](SmallProblem& p) { p.op.sinks = p.pool.zeros(DType::kF32, {4}); },
     "attention sinks not supported"},
    {"MmPrefix", [](Capabilities& c) { without(c, Feature::kMmPrefix); },
     [](AttentionSelectorConfig& config) { config.use_mm_prefix = true; },
     [](SmallProblem& p) {
       p.op.mask.mm_prefix_ranges = p.pool.zeros(DType::kI32, {2, 1, 2});
     },
     "partial multimodal token full attention not supported"},
    {"Rswa", [](Capabilities& c) { without(c, Feature::kRswa); },
     [](AttentionSelectorConfig& config) { config.use_rswa = true; },
     [](SmallProblem& p) {
       p.op.mask.rswa_window = 2;
       p.op.mask.rswa_prefix_lens = p.pool.zeros(DType::kI32, {2});
     },
     "R-SWA not supported"},
    {"NonCausal", [](Capabilities& c) { without(c, Feature::kNonCausal); },
     [](AttentionSelectorConfig& config) { config.use_non_causal = true; },
     [](SmallProblem& p) { p.op.mask.causal = false; }, "non-causal attention not supported"},
    {"PerHeadScales", [](Capabilities& c) { without(c, Feature::kPerHeadScales); },
     [](AttentionSelectorConfig& config) { config.use_per_head_quant_scales = true; },
     [](SmallProblem& p) { p.op.kv.k_scale = p.pool.zeros(DType::kF32, {2}); },
     "per-head quant scales not supported"},
    {"HeadSize",
     [](Capabilities& c) {
       c.head_size = {32, 128, 16};
     },
     [](AttentionSelectorConfig&) {}, [](SmallProblem&) {}, "head_size not supported"},
    {"DType", [](Capabilities& c) { drop(c.query_dtypes, DType::kF32); },
     [](AttentionSelectorConfig&) {}, [](SmallProblem&) {}, "dtype not supported"},
    {"StoredType", [](Capabilities& c) { drop(c.kv_dtypes, DType::kF32); },
     [](AttentionSelectorConfig&) {}, [](SmallProblem&) {}, "kv_cache_dtype not supported"},
    {"Fp8", [](Capabilities& c) { drop(c.kv_dtypes, DType::kF8E4M3FN); },
     [](AttentionSelectorConfig& config) { config.kv_cache_dtype = CacheDType::kFp8; },
     [](SmallProblem& p) {
       p.op.kv.key = p.pool.zeros(DType::kF8E4M3FN, {5, 4, 2, 16});
       p.op.kv.value = p.pool.zeros(DType::kF8E4M3FN, {5, 4, 2, 16});
     },
     "kv_cache_dtype not supported"},
    {"Int8PerTokenHead", [](Capabilities& c) { drop(c.kv_encodings, KvEncoding::kPerTokenHead); },
     [](AttentionSelectorConfig& config) { config.kv_cache_dtype = CacheDType::kInt8PerTokenHead; },
     [](SmallProblem& p) { p.make_per_token_head(); }, "kv_cache_dtype not supported"},
    {"Nvfp4", [](Capabilities& c) { drop(c.kv_encodings, KvEncoding::kNvfp4); },
     [](AttentionSelectorConfig& config) { config.kv_cache_dtype = CacheDType::kNvfp4; },
     [](SmallProblem& p) { p.make_nvfp4(); }, "kv_cache_dtype not supported"},
    {"Operation", [](Capabilities& c) { drop(c.operations, OpKind::kAttention); },
     [](AttentionSelectorConfig&) {}, [](SmallProblem&) {}, "non-MLA not supported"},
};

class LayerAndProblem : public testing::TestWithParam<Wish> {
 protected:
  LayerAndProblem() {
    config_.head_size = 16;
    config_.dtype = DType::kF32;
    GetParam().ask(config_);
    GetParam().use(problem_);
  }
  AttentionSelectorConfig config_;
  SmallProblem problem_;
};

TEST_P(LayerAndProblem, AreTakenByABackendThatCan) {
  EXPECT_EQ(row_reasons(everything(), config_), Texts{});
  EXPECT_EQ(unsupported_reasons(everything(), problem_.problem()), Texts{});
}

TEST_P(LayerAndProblem, AreRefusedByOneThatCannot) {
  Capabilities c = everything();
  GetParam().forget(c);
  const Texts reasons = row_reasons(c, config_);
  EXPECT_EQ(reasons.empty() ? "" : reasons.front(), GetParam().reason);
  EXPECT_FALSE(unsupported_reasons(c, problem_.problem()).empty());
}

INSTANTIATE_TEST_SUITE_P(Wishes, LayerAndProblem, testing::ValuesIn(kWishes),
                         [](const auto& wish) { return wish.param.name; });

TEST(DescribeExecutable, HasARowForEachOperation) {
  Capabilities c = everything();
  c.features = bit(Feature::kNonCausal);
  const DescribedBackend mla = describe_executable("MINE", c, OpKind::kMla);
  EXPECT_EQ(mla.name, "MINE");
  EXPECT_TRUE(mla.mla && !mla.sparse && mla.non_causal && mla.dcp && mla.non_causal_dcp);
  EXPECT_FALSE(mla.pcp);
  EXPECT_TRUE(mla.heads.allow(576));
  EXPECT_TRUE(mla.kv.accepted.contains(CacheDType::kFp8DsMla));
  EXPECT_FALSE(mla.kv.accepted.contains(CacheDType::kInt8PerTokenHead));
  EXPECT_TRUE(describe_executable("MINE", c, OpKind::kMlaSparse).sparse);
  const DescribedBackend attention = describe_executable("MINE", c, OpKind::kAttention);
  EXPECT_FALSE(attention.mla || attention.sparse || attention.non_causal_dcp);
  EXPECT_EQ(attention.attn_types.size(), 4U);
  EXPECT_FALSE(attention.kv.accepted.contains(CacheDType::kFp8DsMla));
  EXPECT_FALSE(attention.kv.accepted.contains(CacheDType::kNvfp4FourOverSix));
  c.kv_layouts = {KvLayout::kPaged};
  EXPECT_EQ(describe_executable("MINE", c, OpKind::kAttention).attn_types,
            std::vector{AttentionType::kDecoder});
  c.operations = {OpKind::kMla};
  EXPECT_TRUE(describe_executable("MINE", c, OpKind::kAttention).dtypes.empty());
}

// Best first: one that cannot be used, one that cannot do much, one that can do all, one that must
// be asked for.
OwnSelector four() {
  Capabilities little = everything();
  little.features = 0;
  little.head_size = {16, 64, 16};
  return OwnSelector({{"ABSENT", nullptr, "no CUDA driver"},
                      {"LITTLE", fake("LITTLE", little), ""},
                      {"ALL", fake("ALL", everything()), ""},
                      {"ASKED", fake("ASKED", everything()), "", false}});
}

SelectionRequest layer(int head_size, bool has_sink) {
  SelectionRequest request;
  request.config.head_size = head_size;
  request.config.has_sink = has_sink;
  return request;
}

TEST(OwnSelector, ChoosesTheFirstThatCan) {
  const Selection small = four().select(layer(64, false));
  EXPECT_EQ(small.backend, "LITTLE");
  EXPECT_EQ(small.path, "attn_oracle.LITTLE");
  ASSERT_EQ(small.logs.size(), 1U);
  EXPECT_EQ(small.logs[0].text,
            "Using LITTLE attention backend out of potential backends: ['LITTLE', 'ALL'].");
  const Selection large = four().select(layer(256, true));
  EXPECT_EQ(large.backend, "ALL");
  ASSERT_EQ(large.candidates.size(), 2U);
  EXPECT_EQ(large.candidates[0].name, "LITTLE");
  EXPECT_EQ(large.candidates[0].reasons,
            (Texts{"head_size not supported", "attention sinks not supported"}));
}

TEST(OwnSelector, SaysWhyNobodyCan) {
  SelectionRequest request = layer(24, true);
  request.config.kv_cache_dtype = CacheDType::kTurboquantK8V4;
  const Selection selection = four().select(request);
  ASSERT_TRUE(selection.error.has_value());
  EXPECT_EQ(selection.error->what(),
            "No valid attention backend found for own with " + to_string(request.config) +
                ". Reasons: {LITTLE: [head_size not supported, kv_cache_dtype not supported, "
                "attention sinks not supported], ALL: [kv_cache_dtype not supported]}.");
}

TEST(OwnSelector, ARequestIsNotReplaced) {
  SelectionRequest request = layer(256, false);
  for (const auto& [name, reasons] : {std::pair("LITTLE", "['head_size not supported']"),
                                      std::pair("ABSENT", "['no CUDA driver']")}) {
    request.backend = name;
    const Selection selection = four().select(request);
    ASSERT_TRUE(selection.error.has_value()) << name;
    EXPECT_EQ(selection.error->what(),
              std::string("Selected backend ") + name +
                  " is not valid for this configuration. Reason: " + reasons);
  }
  request.backend = "ASKED";
  EXPECT_EQ(four().select(request).backend, "ASKED");
  request.backend = "NOBODY";
  EXPECT_THROW(four().select(request), Error);
}

TEST(OwnSelector, AsksBackendsThemselvesAboutAProblem) {
  SmallProblem small;
  EXPECT_EQ(four().select(small.problem()).backend, "LITTLE");
  small.op.mask.causal = false;
  const Selection selection = four().select(small.problem());
  EXPECT_EQ(selection.backend, "ALL");
  EXPECT_EQ(selection.candidates[0].reasons, Texts{"non-causal attention not supported"});
  const Selection conditioning = four().select(small.problem(), true);
  ASSERT_TRUE(conditioning.error.has_value());
  EXPECT_EQ(conditioning.candidates[0].reasons,
            (Texts{"non-causal attention not supported", "conditioning sums not supported"}));
}

SelectorFacts hopper() { return {Platform::kCuda, DeviceCapability{9, 0}, {}}; }

BackendSelector selector_of(const SelectorFacts& facts) {
  return {facts, BackendRegistry(RegistryKind::kAttention)};
}

TEST(BackendBindings, UnboundOnlyDescribes) {
  try {
    BackendBindings().executable("FLASH_ATTN");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "FLASH_ATTN only describes; it cannot run");
  }
}

TEST(BackendBindings, BoundRuns) {
  const std::shared_ptr<const Backend> reference = make_reference_backend();
  BackendBindings bindings;
  bindings.bind(selector_of(hopper()), "FLASH_ATTN", reference);
  EXPECT_EQ(&bindings.executable("FLASH_ATTN"), reference.get());
  EXPECT_THROW(bindings.executable("TRITON_ATTN"), Error);
  EXPECT_THROW(bindings.bind(selector_of(hopper()), "CUSTOM", reference), Error);
  EXPECT_THROW(bindings.bind(selector_of(hopper()), "FLASH_ATTN", nullptr), Error);
  EXPECT_THROW(bindings.bind(selector_of(hopper()), "NOBODY", reference), Error);
}

TEST(BackendBindings, NameWhatIsMissing) {
  const std::shared_ptr<const Backend> cpu = make_cpu_backend();
  BackendBindings bindings;
  try {
    bindings.bind(selector_of(hopper()), "FLASH_ATTN", cpu);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "CPU cannot stand for FLASH_ATTN: DCP not supported (use_dcp=True)");
  }
  EXPECT_THROW(bindings.executable("FLASH_ATTN"), Error);
  const BackendSelector selector = selector_of(hopper());
  EXPECT_EQ(unfulfilled(selector.check("TURBOQUANT").backend(), *cpu),
            Texts{"kv_cache_dtype not supported (kv_cache_dtype=turboquant_k8v4)"});
  EXPECT_EQ(unfulfilled(selector.check("STEP5_DSA").backend(), *cpu),
            Texts{"sparse not supported"});
  EXPECT_EQ(unfulfilled(selector.check("FLEX_ATTENTION").backend(), *cpu), Texts{});
}

TEST(BackendBindings, TryEveryCapability) {
  Capabilities little = everything();
  little.operations = {OpKind::kAttention};
  little.query_dtypes = {DType::kBF16};
  little.kv_dtypes = {DType::kBF16};
  little.kv_encodings = {KvEncoding::kPlain};
  little.kv_layouts = {KvLayout::kPaged};
  little.features = 0;
  little.head_size = {16, 128, 16};
  little.honours_dcp = little.batch_invariant = little.returns_lse = false;
  EXPECT_EQ(unfulfilled(selector_of(hopper()).check("FLASH_ATTN").backend(), *fake("F", little)),
            (Texts{"head_size not supported (head_size=8)", "dtype not supported (dtype=float16)",
                   "kv_cache_dtype not supported (kv_cache_dtype=float16)",
                   "partial multimodal token full attention not supported (use_mm_prefix=True)",
                   "attention sinks not supported (has_sink=True)",
                   "per-head quant scales not supported (use_per_head_quant_scales=True)",
                   "attention type AttentionType.ENCODER not supported (attn_type=encoder)",
                   "sliding window not supported (has_sliding_window=True)",
                   "R-SWA not supported (use_rswa=True)",
                   "non-causal attention not supported (use_non_causal=True)",
                   "batch invariance not supported (use_batch_invariant=True)",
                   "DCP not supported (use_dcp=True)", "log-sum-exp of a decode not returned"}));
}

}  // namespace
}  // namespace attn
