// The backends outside MLA.
#include <algorithm>
#include <array>

#include "core/composite_description.h"
#include "selector/combination_rules.h"
#include "selector/declared_lists.h"
#include "selector/kernel_facts.h"
#include "selector/vllm_backends.h"

namespace attn {
namespace {

using enum CacheDType;
using enum CacheLayout;
using enum GraphSupport;

using Facts = SelectorFacts;
const std::vector<AttentionType> kDecoder = {AttentionType::kDecoder};

// FlashAttention's block sizes follow the model's head size and the run's cache dtype, not the
// layer's. `head_size_v` is the backend's own.
KernelBlocks flash_attn_blocks(const Facts& f, std::optional<int> head_size_v) {
  const auto only = [](BlockSize size) {
    return KernelBlocks{.sizes = {size}, .preferred_at_least = size.size};
  };
  if (f.platform == Platform::kXpu) return only(multiple_of(64));
  const auto& model = f.environment.model;
  const CacheDType run = f.environment.cache_dtype;
  if (model && f.major() == 9 && (run == kFp8 || run == kFp8E4M3) && model->head_size == 512 &&
      flash_attn_version(f, {.head_size = 512}) == 4) {
    return only({64, false});
  }
  if (model && flash_attn_hd256_applies(f, model->head_size, head_size_v) &&
      flash_attn_version(
          f, {.head_size = model->head_size, .head_size_v = head_size_v, .hd256 = true}) == 4) {
    return only({128, false});
  }
  return {.sizes = {multiple_of(16)}};
}

DescribedBackend flash_attn_diffkv(const Facts& f) {
  DescribedBackend b = flash_attn(f);
  b.name = "FLASH_ATTN_DIFFKV";
  b.blocks = flash_attn_blocks(f, 128);
  return b;
}

DescribedBackend step5_dsa(const Facts& f) {
  DescribedBackend b = flash_attn(f);
  b.name = "STEP5_DSA";
  b.heads = {.only = {192}, .declared = std::vector<int>{}};
  b.kv = {kAuto, kBFloat16, kFp8, kFp8E4M3};
  b.attn_types = kDecoder;
  b.capability = f.is(9, 0) || f.is(10, 0) || f.is(10, 3);
  b.capability_raises.clear();
  b.sparse = true;
  b.sink = b.mm_prefix = b.per_head_quant_scales = b.sliding_window = b.non_causal = false;
  b.batch_invariance = b.dcp = false;
  b.layouts = {kBLNHC};
  b.combination = rules_of(step5_rules, "STEP5_DSA");
  b.decode_lse = false;
  b.graph = kUniformSingleTokenDecode;
  b.update_block_table = false;
  return b;
}

DescribedBackend triton_attn_diffkv(const Facts& f) {
  DescribedBackend b = triton_attn(f);
  b.name = "TRITON_ATTN_DIFFKV";
  b.kv = {kAuto, kBFloat16, kFp8, kFp8E4M3};
  b.attn_types = kDecoder;
  return b;
}

const std::string kModule = "vllm.v1.attention.backends.";
const VllmComposite::Child kTriton = {{kModule + "triton_attn", "TritonAttentionBackend"},
                                      triton_attn};
const VllmComposite kTritonFlashAttn = {
    .options = {.class_name = "TritonFlashAttentionBackend",
                .backend_name = "TRITON_FLASH_ATTN",
                .module = kModule + "triton_flash_attn",
                .head_sizes = {256, 512}},
    .general = kTriton,
    .causal = {{kModule + "triton_flash_attn", "CausalFlashAttentionBackend"}, causal_flash_attn}};
const VllmComposite kTritonFlashInfer = {
    .options = {.class_name = "TritonFlashInferBackend",
                .backend_name = "TRITON_FLASHINFER",
                .module = kModule + "triton_flashinfer",
                .head_sizes = {256, 512},
                .kernel_block_sizes = {64},
                .device_major = 10},
    .general = kTriton,
    .causal = {{kModule + "flashinfer", "FlashInferBackend"}, flashinfer}};

// With the mm-prefix policy: only the general child is sent image ranges.
DescribedBackend describe(const VllmComposite& composite, const Facts& f) {
  const std::array children = {DescribedChild{composite.general.describe(f), true},
                               DescribedChild{composite.causal.describe(f), false}};
  return describe_composite(composite.options, f.capability, children);
}
DescribedBackend triton_flash_attn(const Facts& f) { return describe(kTritonFlashAttn, f); }
DescribedBackend triton_flashinfer(const Facts& f) { return describe(kTritonFlashInfer, f); }

CacheDTypeSet flashinfer_kv(const Facts& f) {
  CacheDTypeSet accepted =
      CacheDTypeSet{kAuto, kFloat16, kBFloat16, kFp8, kFp8E4M3, kFp8E5M2}.with(std::nullopt);
  if (f.major() == 8 || f.major() == 9 || f.major() == 12) return accepted.with(kNvfp4);
  if (f.major() != 10 || !trtllm_supported(f, true) || !trtllm_supported(f, false)) return accepted;
  return accepted.with(kNvfp4).with(kNvfp4FourOverSix).with(kNvfp4DsMla);
}

// Large blocks pay off where the TensorRT-LLM kernels decode grouped queries.
BlockSizes flashinfer_blocks(const Facts& f) {
  const auto& model = f.environment.model;
  const bool grouped = model && model->num_kv_heads > 0 &&
                       model->num_heads / model->num_kv_heads > 1 && f.major() == 10 &&
                       trtllm_usable(f, model->num_heads, model->num_kv_heads);
  if (!grouped) return {{16}, {32}, {64}};
  return {{16}, {32}, {64}, {128}, {256}, {512}, {1024}};
}

bool flashinfer_sink(const Facts& f) {
  if (f.environment.use_trtllm_attention == false) return false;
  if (f.is(9, 0) || f.major() == 12) return trtllm_supported(f, false);
  return f.major() == 10 && trtllm_supported(f, false) && trtllm_supported(f, true);
}

bool flashinfer_query_lens_mismatch(const Facts& f) {
  if (f.major() != 10) return false;
  const auto& model = f.environment.model;
  return !model ||
         (f.environment.dcp_size == 1 && trtllm_usable(f, model->num_heads, model->num_kv_heads));
}

DescribedBackend flex_attention(const Facts&) {
  return {.name = "FLEX_ATTENTION",
          .dtypes = kDTypesWithFloat32,
          .blocks = {.sizes = {multiple_of(16)}},
          .attn_types = {AttentionType::kDecoder, AttentionType::kEncoderOnly},
          .mm_prefix = true,
          .sliding_window = true,
          .rswa = true,
          .non_causal = true,
          .batch_invariance = true,
          .layouts = {{kLBNHC}},
          .update_in_forward = false,
          .graph = kAlways};
}

DescribedBackend turboquant(const Facts&) {
  DescribedBackend b = {
      .name = "TURBOQUANT",
      .heads = {.min = 1},
      .kv = {kTurboquantK8V4, kTurboquant4BitNc, kTurboquantK3V4Nc, kTurboquant3BitNc},
      .blocks = {.sizes = {{16}, {32}, {64}, {128}}},
      .layouts = {{kLBNHC}},
      .update_in_forward = false};
  b.kv.accepted = b.kv.accepted.without(std::nullopt);
  return b;
}

DescribedBackend ultraquant(const Facts& f) {
  DescribedBackend b = turboquant(f);
  b.name = "ULTRAQUANT";
  b.dtypes = kBf16Only;
  b.kv = {kUltraquant4Bit};
  b.kv.accepted = b.kv.accepted.without(std::nullopt);
  b.blocks.always_preferred = 64;
  return b;
}

DescribedBackend b12x(const Facts& f) {
  return {.name = "B12X",
          .heads = {.only = {64, 128, 192, 256}},
          .dtypes = kBf16Only,
          .kv = {kAuto, kBFloat16, kFp8, kFp8E4M3},
          .blocks = {.sizes = {{64}, {128}}, .exact = true, .preferred_fallback = 128},
          .capability = f.is(12, 0) || f.is(12, 1),
          .sink = true,
          .sliding_window = true,
          .layouts = {{kLBHNC, kBLHNC}},
          .combination = rules_of(b12x_rules, "B12X"),
          .update_in_forward = false,
          .update_block_table = true};
}

DescribedBackend hpc_attn(const Facts& f) {
  return {.name = "HPC_ATTN",
          .heads = {.only = {128}},
          .dtypes = kHalfDTypes,
          .kv = {kAuto, kBFloat16, kFp8E4M3},
          .blocks = {.sizes = {{64}}},
          .capability = f.is(9, 0),
          .layouts = {{kLBNHC}},
          .graph = kUniformSingleTokenDecode,
          .reorder_batch_threshold = 1};
}

DescribedBackend minimax(const char* name) {
  return {.name = name,
          .heads = {.only = {128}},
          .dtypes = {DType::kBF16, DType::kF16},
          .kv = {kBFloat16, kFp8, kFp8E4M3, kFp8E5M2},
          .blocks = {.sizes = {{128}}},
          .sparse = true,
          .reorder_batch_threshold = 1};
}

DescribedBackend minimax_m3_sparse(const Facts& f) {
  DescribedBackend b = minimax("MINIMAX_M3_SPARSE");
  const bool shuffled = f.platform == Platform::kRocm && aiter_supported(f) &&
                        f.environment.aiter_enabled && f.environment.aiter_shuffle_kv_cache;
  if (shuffled) b.layouts = {kLBHNC, kLHBNC};
  return b;
}
DescribedBackend cutlass_msa(const Facts&) { return minimax("CUTLASS_MSA"); }
DescribedBackend triton_msa(const Facts&) { return minimax("TRITON_MSA"); }

constexpr BackendRow kDenseRows[] = {{"FLASH_ATTN", flash_attn, "cuda,xpu"},
                                     {"FLASH_ATTN_DIFFKV", flash_attn_diffkv, "cuda"},
                                     {"TRITON_ATTN", triton_attn, "cuda,rocm,xpu"},
                                     {"TRITON_ATTN_DIFFKV", triton_attn_diffkv, "cuda"},
                                     {"TRITON_FLASH_ATTN", triton_flash_attn, "cuda,xpu"},
                                     {"FLASHINFER", flashinfer, "cuda"},
                                     {"TRITON_FLASHINFER", triton_flashinfer, "cuda"},
                                     {"FLEX_ATTENTION", flex_attention, "cuda"},
                                     {"TURBOQUANT", turboquant, "cuda,rocm,xpu"},
                                     {"ULTRAQUANT", ultraquant, "cuda,rocm"},
                                     {"B12X", b12x, "cuda"},
                                     {"HPC_ATTN", hpc_attn, "cuda"},
                                     {"MINIMAX_M3_SPARSE", minimax_m3_sparse, "cuda"},
                                     {"CUTLASS_MSA", cutlass_msa, "cuda"},
                                     {"TRITON_MSA", triton_msa, "cuda"},
                                     {"STEP5_DSA", step5_dsa, "cuda"}};

}  // namespace

DescribedBackend flash_attn(const Facts& f) {
  const std::optional<int> version = flash_attn_version(f, {});
  const bool xpu = f.platform == Platform::kXpu;
  DescribedBackend b = {
      .name = "FLASH_ATTN",
      .heads = {.max = xpu || flash_attn_supported(f, 4) ? 512 : 256, .multiple_of = 8},
      .dtypes = kHalfDTypes,
      .kv = {kAuto, kFloat16, kBFloat16, kFp8, kFp8E4M3},
      .blocks = flash_attn_blocks(f, std::nullopt),
      .attn_types = kAllAttentionTypes,
      .capability = f.at_least(8, 0),
      .sink = xpu || version == 3 || version == 4,
      .mm_prefix = flash_attn_supported(f, 4),
      .per_head_quant_scales = version.value_or(0) >= 3,
      .sliding_window = true,
      .rswa = true,
      .non_causal = true,
      .batch_invariance = true,
      .dcp = true,
      .combination = rules_of(flash_attn_rules, "FLASH_ATTN"),
      .update_in_forward = false,
      .update_bypass = true,
      .decode_lse = true,
      .graph = kAlways,  // as vLLM was imported for version 3
      .update_block_table = true};
  if (!flash_attn_reads_kv(f, kFp8, {})) {
    b.kv.accepted = b.kv.accepted.without(kFp8).without(kFp8E4M3);
  }
  if (!f.capability) {
    b.capability_raises =
        "TypeError: '>=' not supported between instances of 'NoneType' and 'DeviceCapability'";
  }
  return b;
}

// FlashAttention as the causal child: Hopper only, and only its versions 3 and 4.
DescribedBackend causal_flash_attn(const Facts& f) {
  DescribedBackend b = flash_attn(f);
  b.capability = f.platform == Platform::kXpu || f.major() == 9;
  b.capability_raises.clear();
  b.combination = rules_of(causal_flash_attn_rules, "FLASH_ATTN");
  return b;
}

DescribedBackend triton_attn(const Facts&) {
  return {.name = "TRITON_ATTN",
          .heads = {.min = 32},
          .dtypes = kDTypesWithFloat32,
          .kv = {kAuto, kFloat16, kBFloat16, kFp8, kFp8E4M3, kFp8E5M2, kInt4PerTokenHead,
                 kInt8PerTokenHead, kFp8PerTokenHead},
          .blocks = {.sizes = {multiple_of(16)}},
          .attn_types = kAllAttentionTypes,
          .sink = true,
          .alibi_sqrt = true,
          .mm_prefix = true,
          .sliding_window = true,
          .rswa = true,
          .non_causal = true,
          .batch_invariance = true,
          .update_in_forward = false,
          .graph = kAlways};
}

DescribedBackend flashinfer(const Facts& f) {
  DescribedBackend b = {
      .name = "FLASHINFER",
      .heads = {.only = {64, 128, 256, 512}},
      .dtypes = kHalfDTypes,
      .kv = {kAuto, kFloat16, kBFloat16, kFp8, kFp8E4M3, kFp8E5M2, kNvfp4, kNvfp4FourOverSix},
      .blocks = {.sizes = flashinfer_blocks(f)},
      .capability = f.at_least(8, 0) && f.capability <= DeviceCapability{12, 1},
      .sink = flashinfer_sink(f),
      .sliding_window = true,
      .non_causal = true,
      .dcp = true,
      .query_lens_mismatch = flashinfer_query_lens_mismatch(f),
      .combination = rules_of(flashinfer_rules, "FLASHINFER"),
      .update_in_forward = false,
      .update_bypass = true,
      .decode_lse = true,
      .graph = kNever,  // decided at run time
      .reorder_batch_threshold = 1};
  b.kv.accepted = flashinfer_kv(f);
  if (f.major() == 10) b.layouts = {kLBHNC, kBLHNC};
  return b;
}

std::span<const BackendRow> dense_backends() { return kDenseRows; }

const VllmComposite* find_vllm_composite(std::string_view member) {
  for (const VllmComposite* composite : {&kTritonFlashAttn, &kTritonFlashInfer}) {
    if (composite->options.backend_name == member) return composite;
  }
  return nullptr;
}

const BackendRow* find_backend_row(std::string_view member) {
  for (const auto rows : {dense_backends(), mla_backends(), other_platform_backends()}) {
    for (const BackendRow& row : rows) {
      if (row.member == member) return &row;
    }
  }
  return nullptr;
}

}  // namespace attn
