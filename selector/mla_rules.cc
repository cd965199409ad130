// supports_combination of the MLA backends.
#include <fmt/core.h>

#include <optional>

#include "attn/error.h"
#include "selector/combination_rules.h"
#include "selector/kernel_facts.h"

namespace attn {
namespace {

using Config = AttentionSelectorConfig;
using enum CacheDType;

// Where vLLM reads an attribute that the model lacks, it raises; a selection does not get there.
int existing(const char* name, std::optional<int> attribute) {
  if (!attribute) throw Error(fmt::format("model.hf.{} is missing", name));
  return *attribute;
}

bool kv_in(const Config& config, CacheDTypeSet set) { return set.contains(config.kv_cache_dtype); }

Broken flashmla_rule(FlashMlaGap gap) {
  switch (gap) {
    case FlashMlaGap::kNone:
      break;
    case FlashMlaGap::kNoC:
      return Broken::kFlashMlaNoC;
    case FlashMlaGap::kNoExtensionC:
      return Broken::kFlashMlaNoExtensionC;
    case FlashMlaGap::kDenseDevice:
      return Broken::kFlashMlaDense;
    case FlashMlaGap::kSparseDevice:
      return Broken::kFlashMlaSparse;
  }
  return Broken::kNothing;
}

// What of a model's heads fits FlashInfer's sparse kernels.
Broken flashinfer_sparse_model(const HfFacts& hf) {
  if (existing("qk_rope_head_dim", hf.qk_rope_head_dim) == 0) {
    const bool fits = existing("qk_nope_head_dim", hf.qk_nope_head_dim) == 256 &&
                      existing("kv_lora_rank", hf.kv_lora_rank) == 512;
    if (!fits) return Broken::kSparseNoRope;
  } else {
    const int nope = existing("qk_nope_head_dim", hf.qk_nope_head_dim);
    if (nope != 128 && nope != 192) return Broken::kSparseNope;
  }
  return hf.index_topk ? Broken::kNothing : Broken::kSparseIndexTopk;
}

bool fa4_takes_heads(int gathered_heads, int dcp_size) {
  for (const int heads : {8, 16, 32, 64}) {
    if (gathered_heads == heads) return true;
  }
  return dcp_size <= 1 && gathered_heads == 128;
}

Broken fa4_model(const ModelFacts& model, int dcp_size) {
  if (!model.hf.index_topk || *model.hf.index_topk % 128 != 0) return Broken::kFa4IndexTopk;
  if (model.hf.kv_lora_rank != 512 || model.hf.qk_rope_head_dim != 64) {
    return Broken::kFa4Dimensions;
  }
  return fa4_takes_heads(model.num_heads * dcp_size, dcp_size) ? Broken::kNothing
                                                               : Broken::kFa4Heads;
}

}  // namespace

Broken flashinfer_mla_rules(const SelectorFacts& facts, const Config&) {
  if (!facts.environment.model) return Broken::kNothing;
  const int nope = facts.environment.model->hf.qk_nope_head_dim.value_or(1);
  return nope == 64 || nope == 128 || nope == 192 ? Broken::kNothing : Broken::kFlashInferMlaNope;
}

Broken tokenspeed_mla_rules(const SelectorFacts& facts, const Config&) {
  if (!facts.environment.tokenspeed_mla) return Broken::kTokenspeedMissing;
  if (!facts.environment.model) return Broken::kNothing;
  const HfFacts& hf = facts.environment.model->hf;
  const bool fits = hf.qk_nope_head_dim == 128 && hf.qk_rope_head_dim == 64 && hf.v_head_dim == 128;
  return fits ? Broken::kNothing : Broken::kTokenspeedDimensions;
}

Broken flash_attn_mla_rules(const SelectorFacts& facts, const Config&) {
  return flash_attn_mla_supported(facts) ? Broken::kNothing : Broken::kFlashAttnMlaDevice;
}

Broken flashmla_rules(const SelectorFacts& facts, const Config& config) {
  return flashmla_rule(flashmla_gap(facts, config.use_sparse));
}

Broken flashinfer_sparse_rules(const SelectorFacts& facts, const Config& config) {
  const SelectorEnvironment& e = facts.environment;
  if (e.pcp_size > 1 && e.dcp_size > 1) return Broken::kSparsePcpDcp;
  if (config.kv_cache_dtype == kFp8DsMla) return Broken::kSparseDsMla;
  return e.model ? flashinfer_sparse_model(e.model->hf) : Broken::kNothing;
}

Broken sparse_sm120_rules(const SelectorFacts& facts, const Config& config) {
  static constexpr CacheDTypeSet kAccepted =
      CacheDTypeSet{kAuto, kFp8, kFp8E4M3, kFp8DsMla}.with(std::nullopt);
  if (!facts.environment.flashinfer_sparse_mla_sm120) return Broken::kSm120Api;
  if (config.dtype != DType::kBF16) return Broken::kDType;
  if (!kv_in(config, kAccepted)) return Broken::kKvCacheDType;
  if (!facts.environment.model) return Broken::kNothing;
  const std::optional<int> topk = facts.environment.model->hf.index_topk;
  if (!topk) return Broken::kSm120NoIndexTopk;
  return topk == 2048 ? Broken::kNothing : Broken::kSm120IndexTopk;
}

Broken sparse_sm90_rules(const SelectorFacts& facts, const Config& config) {
  if (!facts.environment.flashinfer_sm90_nope_mla) return Broken::kSm90Api;
  if (!config.use_sparse) return Broken::kSm90Dense;
  if (!facts.environment.model) return Broken::kNothing;
  const HfFacts& hf = facts.environment.model->hf;
  if (existing("kv_lora_rank", hf.kv_lora_rank) != 512) return Broken::kSm90LoraRank;
  const int rope = existing("qk_rope_head_dim", hf.qk_rope_head_dim);
  return rope == 0 || rope == 64 ? Broken::kNothing : Broken::kSm90Rope;
}

Broken flashmla_sparse_rules(const SelectorFacts& facts, const Config& config) {
  static constexpr CacheDTypeSet kWith512 =
      CacheDTypeSet{kAuto, kBFloat16, kFloat16, kFp8DsMla}.with(std::nullopt);
  if (config.head_size == 512) {
    if (!kv_in(config, kWith512) || facts.major() != 9) return Broken::kFlashMla512Kv;
    const auto& model = facts.environment.model;
    if (model && model->hf.qk_rope_head_dim.value_or(64) != 0) return Broken::kFlashMla512Rope;
  }
  const bool nvfp4 = config.kv_cache_dtype == kNvfp4DsMla;
  return nvfp4 && facts.major() != 10 ? Broken::kFlashMlaNvfp4 : Broken::kNothing;
}

Broken flash_attn_sparse_rules(const SelectorFacts& facts, const Config& config) {
  static constexpr CacheDTypeSet kAccepted =
      CacheDTypeSet{kAuto, kFloat16, kBFloat16}.with(std::nullopt);
  if (!kv_in(config, kAccepted)) return Broken::kFlashAttnSparseKv;
  if (!flash_attn_mla_supported(facts)) return Broken::kFlashAttnMlaDevice;
  const SelectorEnvironment& e = facts.environment;
  if (!e.model) return Broken::kNothing;
  if (e.dcp_size > 1) return Broken::kFlashAttnSparseDcp;
  return e.model->hf.index_topk ? Broken::kNothing : Broken::kFlashAttnSparseIndexTopk;
}

Broken flash_attn_sparse_fa4_rules(const SelectorFacts& facts, const Config& config) {
  const SelectorEnvironment& e = facts.environment;
  if (!e.flashinfer) return Broken::kFa4FlashInfer;
  if (!e.fa4_built) return Broken::kFa4NotBuilt;
  if (facts.major() < 9 || facts.major() > 11) return Broken::kFa4Device;
  if (e.fa4_cute_error) return Broken::kFa4Cute;
  if (e.model) {
    const Broken rule = fa4_model(*e.model, e.dcp_size);
    if (rule != Broken::kNothing) return rule;
  }
  return flashinfer_sparse_rules(facts, config);
}

Broken mega_attn_rules(const SelectorFacts& facts, const Config&) {
  const Broken rule = flashmla_rule(flashmla_gap(facts, true));
  if (rule != Broken::kNothing) return rule;
  if (facts.major() != 10) return Broken::kMegaDevice;
  if (!facts.environment.flashmla_mega_attn_ops) return Broken::kMegaOps;
  return facts.environment.flashmla_mega_permute_ops ? Broken::kNothing : Broken::kMegaPermutes;
}

Broken flashinfer_dsv4_rules(const SelectorFacts& facts, const Config& config) {
  static constexpr CacheDTypeSet kOnSm100 =
      CacheDTypeSet{kAuto, kBFloat16, kFp8, kFp8E4M3}.with(std::nullopt);
  static constexpr CacheDTypeSet kOnSm120 = {kFp8, kFp8E4M3, kFp8DsMla};
  if (facts.major() == 10) {
    if (config.kv_cache_dtype == kFp8DsMla) return Broken::kDsv4DsMla;
    return kv_in(config, kOnSm100) ? Broken::kNothing : Broken::kKvCacheDType;
  }
  if (facts.major() != 12) return Broken::kDsv4Device;
  if (!kv_in(config, kOnSm120)) return Broken::kKvCacheDType;
  return facts.environment.flashinfer_sparse_mla_sm120 ? Broken::kNothing : Broken::kDsv4Sm120Api;
}

}  // namespace attn
