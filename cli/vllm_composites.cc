#include "cli/vllm_composites.h"

#include <utility>

#include "attn/composite.h"
#include "attn/vllm_error.h"
#include "selector/combination_rules.h"
#include "selector/vllm_backends.h"

namespace attn::cli {
namespace {

using Describe = DescribedBackend (*)(const SelectorFacts&);

class DescribedOnly final : public AttentionBackend {
 public:
  DescribedOnly(ClassName full_name, SelectorFacts facts, Describe row)
      : full_name_(std::move(full_name)),
        facts_(std::move(facts)),
        describe_(row),
        name_(describe_(facts_).name) {}

  std::string name() const override { return name_; }
  ClassName full_class_name() const override { return full_name_; }
  DescribedBackend describe(const std::optional<DeviceCapability>& capability) const override {
    SelectorFacts facts = facts_;
    facts.capability = capability;
    return describe_(facts);
  }
  BlockSizes kernel_block_sizes(const KvCacheSpec&) const override {
    return describe_(facts_).blocks.sizes;
  }
  GraphSupport cudagraph_support(const BuilderArguments&) const override {
    return describe_(facts_).graph;
  }
  std::unique_ptr<AttentionMetadataBuilder> make_builder(const BuilderArguments&) const override {
    throw VllmError("NotImplementedError", name_ + " is only described");
  }
  std::unique_ptr<AttentionImpl> make_impl(const ImplArguments&) const override {
    throw VllmError("NotImplementedError", name_ + " is only described");
  }

 private:
  ClassName full_name_;
  SelectorFacts facts_;
  Describe describe_;
  std::string name_;
};

constexpr const char* kModule = "vllm.v1.attention.backends.";

AttentionBackendPtr composite_of(const SelectorFacts& facts, const ClassName& causal_name,
                                 Describe causal, CompositeOptions options) {
  const ClassName general = {std::string(kModule) + "triton_attn", "TritonAttentionBackend"};
  return compose(
      {described_only(general, facts, triton_attn), described_only(causal_name, facts, causal)},
      mm_prefix_policy(), std::move(options));
}

AttentionBackendPtr triton_flashinfer(const SelectorFacts& facts) {
  return composite_of(facts, {std::string(kModule) + "flashinfer", "FlashInferBackend"}, flashinfer,
                      {.class_name = "TritonFlashInferBackend",
                       .backend_name = "TRITON_FLASHINFER",
                       .module = std::string(kModule) + "triton_flashinfer",
                       .head_sizes = {256, 512},
                       .kernel_block_sizes = {64},
                       .device_major = 10,
                       .connector_and_types_of_children = false});
}

AttentionBackendPtr triton_flash_attn(const SelectorFacts& facts, Describe causal) {
  const std::string module = std::string(kModule) + "triton_flash_attn";
  return composite_of(facts, {module, "CausalFlashAttentionBackend"}, causal,
                      {.class_name = "TritonFlashAttentionBackend",
                       .backend_name = "TRITON_FLASH_ATTN",
                       .module = module,
                       .head_sizes = {256, 512},
                       .kernel_block_sizes = {},
                       .device_major = {},
                       .connector_and_types_of_children = false});
}

bool read_in_tables(const SelectorFacts& facts, std::optional<CacheDType> dtype) {
  const bool fp8 = dtype == CacheDType::kFp8 || dtype == CacheDType::kFp8E4M3;
  return !is_quantised(dtype) || (facts.environment.fa3_built && fp8);
}

// The tables answer every question whether FlashAttention reads a quantised cache in one way.
Broken rules_of_table(const SelectorFacts& facts, const AttentionSelectorConfig& config) {
  const Broken own = causal_flash_attn_rules(facts, config);
  const bool reads = read_in_tables(facts, config.kv_cache_dtype);
  return own == Broken::kNothing && !reads ? Broken::kFp8NeedsNewFlashAttn : own;
}

DescribedBackend causal_flash_attn_of_table(const SelectorFacts& facts) {
  DescribedBackend backend = causal_flash_attn(facts);
  for (const CacheDType dtype : {CacheDType::kFp8, CacheDType::kFp8E4M3}) {
    if (!read_in_tables(facts, dtype)) backend.kv.accepted = backend.kv.accepted.without(dtype);
  }
  backend.combination = rules_of(rules_of_table, backend.name);
  return backend;
}

}  // namespace

AttentionBackendPtr described_only(ClassName name, SelectorFacts facts, Describe describe) {
  return std::make_shared<const DescribedOnly>(std::move(name), std::move(facts), describe);
}

AttentionBackendPtr vllm_composite(const std::string& name, const SelectorFacts& facts) {
  if (name == "TRITON_FLASHINFER") return triton_flashinfer(facts);
  if (name == "TRITON_FLASH_ATTN") return triton_flash_attn(facts, causal_flash_attn);
  return nullptr;
}

std::optional<VllmBackend> vllm_backend_of_table(const std::string& name,
                                                 const DeviceCapability& device,
                                                 std::optional<int> flash_attn_version) {
  SelectorFacts facts;
  facts.capability = device;
  facts.environment.fa2_built = flash_attn_version == 2;
  facts.environment.fa3_built = flash_attn_version == 3;
  facts.environment.fa4_built = flash_attn_version == 4;
  facts.environment.flash_attn_version = flash_attn_version;
  if (name == "TRITON_FLASH_ATTN") {
    return VllmBackend{triton_flash_attn(facts, causal_flash_attn_of_table), facts};
  }
  const AttentionBackendPtr backend = vllm_composite(name, facts);
  return backend ? std::optional(VllmBackend{backend, facts}) : std::nullopt;
}

}  // namespace attn::cli
