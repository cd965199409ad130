// The texts of broken combination rules.
#include <fmt/core.h>

#include <array>
#include <string_view>

#include "attn/error.h"
#include "selector/combination_rules.h"

namespace attn {
namespace {

struct FixedText {
  Broken rule;
  std::string_view text;
};

// {N} stands for the backend's name.
constexpr std::array kFixedTexts = {
    FixedText{Broken::kSinkBelowSm90, "sink not supported on compute capability < 9.0"},
    FixedText{Broken::kSm90Fp8MmPrefix, "SM90 FP8 KV with mm_prefix requires Triton"},
    FixedText{Broken::kFp8NeedsNewFlashAttn,
              "FP8 KV cache requires FA3 on SM90, FA4 with head_size=512 on SM90, or FA4 on SM100"},
    FixedText{Broken::kMmPrefixNeedsFlashAttn4,
              "mm_prefix (PrefixLM bidirectional attention) requires FlashAttention v4, which does "
              "not resolve for this head_size"},
    FixedText{Broken::kCausalRoute, "causal route requires FlashAttention v3 or v4"},
    FixedText{Broken::kNvfp4Head64, "fa2 prefill misreads an NVFP4 KV cache at head_size 64"},
    FixedText{Broken::kNvfp4Sink, "the sink prefill wrapper cannot read an NVFP4 KV cache"},
    FixedText{Broken::kB12xDType, "b12x currently requires bfloat16 queries"},
    FixedText{Broken::kB12xFloat16, "b12x does not support float16 KV cache"},
    FixedText{Broken::kB12xQuantised,
              "b12x currently supports only fp8/fp8_e4m3 quantized KV cache dtypes"},
    FixedText{Broken::kB12xMissing, "Install the b12x backend with `pip install vllm[b12x]`"},
    FixedText{Broken::kB12xDevice, "b12x paged attention is not supported on the current device"},
    FixedText{Broken::kTokenspeedMissing,
              "tokenspeed_mla package is not installed. Install it with: `uv pip install "
              "tokenspeed-mla`"},
    FixedText{Broken::kFlashAttnMlaDevice, "FlashAttention MLA not supported on this device"},
    FixedText{Broken::kFlashMlaNoC,
              "vllm._flashmla_C is not available, likely was not compiled due to insufficient nvcc "
              "version or a supported arch was not in the list of target arches to compile for."},
    FixedText{Broken::kFlashMlaNoExtensionC,
              "vllm._flashmla_extension_C is not available, likely was not compiled due to a build "
              "error."},
    FixedText{Broken::kFlashMlaDense, "FlashMLA Dense is only supported on Hopper devices."},
    FixedText{Broken::kFlashMlaSparse,
              "FlashMLA Sparse is only supported on Hopper and Blackwell DC devices."},
    FixedText{Broken::kSparsePcpDcp,
              "{N} does not support combined PCP+DCP; use FLASHMLA_SPARSE, which gathers each DCP "
              "KV shard before running the rank-local PCP prefill queries"},
    FixedText{Broken::kSparseDsMla, "{N} SM10 does not support fp8_ds_mla kv-cache dtype"},
    FixedText{Broken::kSparseIndexTopk,
              "FlashInfer MLA Sparse requires model with index_topk config"},
    FixedText{Broken::kSm120Api,
              "FLASHINFER_MLA_SPARSE_SM120 requires FlashInfer's sparse MLA decode API"},
    FixedText{Broken::kDType, "dtype not supported"},
    FixedText{Broken::kKvCacheDType, "kv_cache_dtype not supported"},
    FixedText{Broken::kSm120NoIndexTopk,
              "FLASHINFER_MLA_SPARSE_SM120 requires a model with index_topk config"},
    FixedText{Broken::kSm90Api,
              "FLASHINFER_MLA_SPARSE_SM90 requires FlashInfer with SM90 MLA support (ckv_scale_arr "
              "in BatchMLAPagedAttentionWrapper.run, FlashInfer >= 0.6.18)"},
    FixedText{Broken::kSm90Dense, "FLASHINFER_MLA_SPARSE_SM90 requires sparse MLA"},
    FixedText{Broken::kSm90LoraRank, "FLASHINFER_MLA_SPARSE_SM90 requires kv_lora_rank=512"},
    FixedText{Broken::kSm90Rope, "FLASHINFER_MLA_SPARSE_SM90 requires qk_rope_head_dim in (0, 64)"},
    FixedText{Broken::kFlashMla512Rope,
              "FLASHMLA_SPARSE supports head_size 512 only for rope-free (NoPE) models"},
    FixedText{Broken::kFlashMlaNvfp4,
              "FLASHMLA_SPARSE only supports the nvfp4_ds_mla kv-cache dtype on SM100 (Blackwell)"},
    FixedText{Broken::kFlashAttnSparseKv,
              "FlashAttention MLA Sparse currently supports only FP16/BF16 KV cache"},
    FixedText{Broken::kFlashAttnSparseDcp,
              "FlashAttention MLA Sparse does not support DCP for now"},
    FixedText{Broken::kFlashAttnSparseIndexTopk,
              "FlashAttention MLA Sparse requires model with index_topk"},
    FixedText{Broken::kFa4FlashInfer,
              "FA4 sparse MLA runs its prefill batches on FlashInfer's kernel"},
    FixedText{Broken::kFa4NotBuilt,
              "FA4 unavailable: FA4 is unavailable due to: vllm.vllm_flash_attn.cute.interface not "
              "found"},
    FixedText{Broken::kFa4Device,
              "FA4 unavailable: FA4 is only supported on devices with compute capability 9.x, "
              "10.x, or 11.x"},
    FixedText{Broken::kMegaDevice, "FlashMLA mega attention requires sm_10x GPUs."},
    FixedText{Broken::kMegaOps, "vllm._flashmla_C was built without the mega attention ops."},
    FixedText{Broken::kMegaPermutes,
              "vllm._flashmla_C predates the mega attention weight permutes."},
    FixedText{Broken::kDsv4DsMla,
              "FLASHINFER_MLA_SPARSE_DSV4 SM10x uses the plain per-tensor FP8 KV layout, not "
              "fp8_ds_mla"},
    FixedText{Broken::kDsv4Sm120Api,
              "FLASHINFER_MLA_SPARSE_DSV4 SM120 requires FlashInfer's sparse MLA decode API"},
    FixedText{Broken::kDsv4Device, "FLASHINFER_MLA_SPARSE_DSV4 requires SM10x or SM12x"},
    FixedText{Broken::kSegmentedDevice, "ROCM_SEGMENTED_ATTN requires AMD RDNA GPUs on ROCm"},
    FixedText{Broken::kSegmentedFp8, "FP8 segmented attention requires gfx12"},
    FixedText{Broken::kAiterNonCausalFp16, "non-causal fp16 MLA decode not supported"},
};

std::string or_none(std::optional<int> value) { return value ? std::to_string(*value) : "None"; }

std::string fixed_text(Broken rule, const std::string& backend) {
  for (const FixedText& fixed : kFixedTexts) {
    if (fixed.rule != rule) continue;
    const bool named = fixed.text.starts_with("{N}");
    return (named ? backend : "") + std::string(fixed.text.substr(named ? 3 : 0));
  }
  throw Error(fmt::format("combination rule {} has no text", static_cast<unsigned>(rule)));
}

// Texts that hold values of the model.
std::string model_text(Broken rule, const std::string& backend, const SelectorEnvironment& e) {
  const ModelFacts model = e.model.value_or(ModelFacts{});
  const HfFacts& hf = model.hf;
  switch (rule) {
    case Broken::kFlashInferMlaNope:
      return fmt::format(
          "FlashInfer MLA kernel requires qk_nope_head_dim in [64, 128, 192], but got {}",
          hf.qk_nope_head_dim.value_or(1));
    case Broken::kTokenspeedDimensions:
      return fmt::format(
          "tokenspeed_mla requires DeepSeek R1 MLA dimensions (qk_nope_head_dim=128, "
          "qk_rope_head_dim=64, v_head_dim=128), got ({}, {}, {})",
          hf.qk_nope_head_dim.value_or(0), hf.qk_rope_head_dim.value_or(0),
          hf.v_head_dim.value_or(0));
    case Broken::kSparseNoRope:
      return fmt::format(
          "FlashInfer native no-rope MLA requires qk_nope_head_dim=256 and kv_lora_rank=512, but "
          "got qk_nope_head_dim={}, kv_lora_rank={}",
          or_none(hf.qk_nope_head_dim), or_none(hf.kv_lora_rank));
    case Broken::kSparseNope:
      return fmt::format(
          "FlashInfer MLA Sparse kernel requires qk_nope_head_dim in [128, 192], but got {}",
          or_none(hf.qk_nope_head_dim));
    case Broken::kSm120IndexTopk:
      return fmt::format("FLASHINFER_MLA_SPARSE_SM120 requires index_topk=2048; got {}",
                         or_none(hf.index_topk));
    case Broken::kFa4IndexTopk:
      return fmt::format("FA4 sparse MLA requires index_topk % 128 == 0, got {}",
                         or_none(hf.index_topk));
    case Broken::kFa4Dimensions:
      return fmt::format(
          "FA4 sparse MLA requires (kv_lora_rank, qk_rope_head_dim) == (512, 64), got ({}, {})",
          or_none(hf.kv_lora_rank), or_none(hf.qk_rope_head_dim));
    case Broken::kFa4Heads:
      return fmt::format(
          "FA4 sparse MLA requires {} gathered query heads, got num_heads={} * dcp_size={}",
          e.dcp_size > 1 ? "(8, 16, 32, 64)" : "(8, 16, 32, 64, 128)", model.num_heads, e.dcp_size);
    default:
      return fixed_text(rule, backend);
  }
}

std::string printed(const std::optional<DeviceCapability>& capability) {
  if (!capability) return "None";
  return fmt::format("DeviceCapability(major={}, minor={})", capability->major, capability->minor);
}

class FunctionRules final : public CombinationRules {
 public:
  FunctionRules(CombinationFunction function, std::string backend)
      : function_(function), backend_(std::move(backend)) {}

  std::uint32_t first_broken(const SelectorFacts& facts,
                             const AttentionSelectorConfig& config) const override {
    return static_cast<std::uint32_t>(function_(facts, config));
  }
  std::string text(std::uint32_t rule, const SelectorFacts& facts,
                   const AttentionSelectorConfig& config) const override {
    return combination_text(static_cast<Broken>(rule), backend_, facts, config);
  }

 private:
  CombinationFunction function_;
  std::string backend_;
};

}  // namespace

std::string combination_text(Broken rule, const std::string& backend, const SelectorFacts& facts,
                             const AttentionSelectorConfig& config) {
  if (rule == Broken::kFa4Cute) {
    return fmt::format("FA4 cute-DSL entry point failed to import: {}",
                       facts.environment.fa4_cute_error.value_or("None"));
  }
  if (rule == Broken::kFlashMla512Kv) {
    return fmt::format(
        "FLASHMLA_SPARSE supports head_size 512 only with bf16 or fp8_ds_mla kv-cache on SM90 "
        "(NoPE), got kv_cache_dtype={}, capability={}",
        config.kv_cache_dtype ? name(*config.kv_cache_dtype) : "None", printed(facts.capability));
  }
  return model_text(rule, backend, facts.environment);
}

std::shared_ptr<const CombinationRules> rules_of(CombinationFunction function,
                                                 std::string backend) {
  return std::make_shared<FunctionRules>(function, std::move(backend));
}

}  // namespace attn
