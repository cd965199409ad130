// The rules of vLLM's supports_combination, as functions that name the first broken one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attn/described_backend.h"

namespace attn {

// Every text that a supports_combination of vLLM can answer, in the order of the specification.
enum class Broken : std::uint32_t {
  kNothing,
  kSinkBelowSm90,
  kSm90Fp8MmPrefix,
  kFp8NeedsNewFlashAttn,
  kMmPrefixNeedsFlashAttn4,
  kCausalRoute,
  kNvfp4Head64,
  kNvfp4Sink,
  kB12xDType,
  kB12xFloat16,
  kB12xQuantised,
  kB12xMissing,
  kB12xDevice,
  kFlashInferMlaNope,
  kTokenspeedMissing,
  kTokenspeedDimensions,
  kFlashAttnMlaDevice,
  kFlashMlaNoC,
  kFlashMlaNoExtensionC,
  kFlashMlaDense,
  kFlashMlaSparse,
  kSparsePcpDcp,
  kSparseDsMla,
  kSparseNoRope,
  kSparseNope,
  kSparseIndexTopk,
  kSm120Api,
  kDType,
  kKvCacheDType,
  kSm120NoIndexTopk,
  kSm120IndexTopk,
  kSm90Api,
  kSm90Dense,
  kSm90LoraRank,
  kSm90Rope,
  kFlashMla512Rope,
  kFlashMla512Kv,
  kFlashMlaNvfp4,
  kFlashAttnSparseKv,
  kFlashAttnSparseDcp,
  kFlashAttnSparseIndexTopk,
  kFa4FlashInfer,
  kFa4NotBuilt,
  kFa4Device,
  kFa4Cute,
  kFa4IndexTopk,
  kFa4Dimensions,
  kFa4Heads,
  kMegaDevice,
  kMegaOps,
  kMegaPermutes,
  kDsv4DsMla,
  kDsv4Sm120Api,
  kDsv4Device,
  kSegmentedDevice,
  kSegmentedFp8,
  kAiterNonCausalFp16,
};

using CombinationFunction = Broken (*)(const SelectorFacts&, const AttentionSelectorConfig&);

Broken flash_attn_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);
Broken step5_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);
Broken causal_flash_attn_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);
Broken flashinfer_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);
Broken b12x_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);
Broken segmented_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);
Broken aiter_mla_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);

Broken flashinfer_mla_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);
Broken tokenspeed_mla_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);
Broken flash_attn_mla_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);
Broken flashmla_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);
Broken flashinfer_sparse_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);
Broken sparse_sm120_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);
Broken sparse_sm90_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);
Broken flashmla_sparse_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);
Broken flash_attn_sparse_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);
Broken flash_attn_sparse_fa4_rules(const SelectorFacts& facts,
                                   const AttentionSelectorConfig& config);
Broken mega_attn_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);
Broken flashinfer_dsv4_rules(const SelectorFacts& facts, const AttentionSelectorConfig& config);

// `backend` is the name that some texts hold.
std::string combination_text(Broken rule, const std::string& backend, const SelectorFacts& facts,
                             const AttentionSelectorConfig& config);

// Rules for a row: a function, and the name that its texts hold.
std::shared_ptr<const CombinationRules> rules_of(CombinationFunction function, std::string backend);

}  // namespace attn
