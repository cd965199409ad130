#include "cli/vllm_composites.h"

#include <utility>

#include "attn/composite.h"
#include "attn/vllm_error.h"
#include "selector/combination_rules.h"
#include "selector/vllm_backends.h"

namespace attn::cli {
namespace {

// A child that is described in these facts and on any device, and cannot run.
class DescribedOnly final : public AttentionBackend {
 public:
  DescribedOnly(VllmComposite::Child row, SelectorFacts facts)
      : row_(std::move(row)), facts_(std::move(facts)), name_(row_.describe(facts_).name) {}

  std::string name() const override { return name_; }
  ClassName full_class_name() const override { return row_.full_name; }
  DescribedBackend describe(const std::optional<DeviceCapability>& capability) const override {
    SelectorFacts facts = facts_;
    facts.capability = capability;
    return row_.describe(facts);
  }
  BlockSizes kernel_block_sizes(const KvCacheSpec&) const override {
    return row_.describe(facts_).blocks.sizes;
  }
  GraphSupport cudagraph_support(const BuilderArguments&) const override {
    return row_.describe(facts_).graph;
  }
  std::unique_ptr<AttentionMetadataBuilder> make_builder(const BuilderArguments&) const override {
    throw VllmError("NotImplementedError", name_ + " is only described");
  }
  std::unique_ptr<AttentionImpl> make_impl(const ImplArguments&) const override {
    throw VllmError("NotImplementedError", name_ + " is only described");
  }

 private:
  VllmComposite::Child row_;
  SelectorFacts facts_;
  std::string name_;
};

AttentionBackendPtr composed(const VllmComposite& row, const SelectorFacts& facts) {
  const auto child = [&](const VllmComposite::Child& one) {
    return std::make_shared<const DescribedOnly>(one, facts);
  };
  return compose({child(row.general), child(row.causal)}, mm_prefix_policy(), row.options);
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

AttentionBackendPtr vllm_composite(const std::string& name, const SelectorFacts& facts) {
  const VllmComposite* const row = find_vllm_composite(name);
  return row ? composed(*row, facts) : nullptr;
}

std::optional<VllmBackend> vllm_backend_of_table(const std::string& name,
                                                 const DeviceCapability& device,
                                                 std::optional<int> flash_attn_version) {
  const VllmComposite* const found = find_vllm_composite(name);
  if (!found) return std::nullopt;
  VllmComposite row = *found;
  if (name == "TRITON_FLASH_ATTN") row.causal.describe = causal_flash_attn_of_table;
  SelectorFacts facts;
  facts.capability = device;
  facts.environment.fa2_built = flash_attn_version == 2;
  facts.environment.fa3_built = flash_attn_version == 3;
  facts.environment.fa4_built = flash_attn_version == 4;
  facts.environment.flash_attn_version = flash_attn_version;
  return VllmBackend{composed(row, facts), facts};
}

}  // namespace attn::cli
