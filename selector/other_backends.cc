// The backends of ROCm, CPU and XPU, and those for state-space layers. A row names everything that
// is not the base class's answer.
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

const KvDTypes kAnyFp8 = {kAuto, kFloat16, kBFloat16, kFp8, kFp8E4M3, kFp8E5M2};
const std::vector<int> kRocmHeads = {32, 64, 80, 96, 128, 160, 192, 224, 256};

DescribedBackend rocm_attn(const Facts&) {
  return {
      .name = "ROCM_ATTN",
      .heads = {.only = kRocmHeads},
      .dtypes = kDTypesWithFloat32,
      .kv = kAnyFp8,
      .blocks = {.sizes = {multiple_of(16)}},
      .attn_types = {AttentionType::kDecoder, AttentionType::kEncoder, AttentionType::kEncoderOnly},
      .sliding_window = true,
      .non_causal = true,
      .kv_connector = false,
      .layouts = {{kLHBNC, kLBHNC}},
      .update_in_forward = false,
      .graph = kAlways};
}

DescribedBackend rocm_segmented_attn(const Facts&) {
  return {.name = "ROCM_SEGMENTED_ATTN",
          .heads = {.only = {64, 128, 256}},
          .dtypes = kHalfDTypes,
          .kv = kCommonKv,
          .blocks = {.sizes = {multiple_of(16)}},
          .sink = true,
          .sliding_window = true,
          .non_causal = true,
          .kv_connector = false,
          .layouts = {{kLHBNC, kLBHNC}},
          .combination = rules_of(segmented_rules, "ROCM_SEGMENTED_ATTN"),
          .update_in_forward = false,
          .graph = kAlways};
}

DescribedBackend rocm_aiter_unified_attn(const Facts& f) {
  DescribedBackend b = {.name = "ROCM_AITER_UNIFIED_ATTN",
                        .heads = {.min = 32, .declared = kRocmHeads},
                        .dtypes = kHalfDTypes,
                        .kv = kAnyFp8,
                        .blocks = {.sizes = {multiple_of(16)}, .always_preferred = 64},
                        .attn_types = kAllAttentionTypes,
                        .sink = true,
                        .sliding_window = true,
                        .layouts = {{kLBHNC, kLHBNC}},
                        .update_in_forward = false,
                        .graph = kAlways};
  if (f.environment.kv_connector_instance) b.layouts = {kLBHNC};
  return b;
}

DescribedBackend rocm_aiter_fa(const Facts& f) {
  DescribedBackend b = {.name = "FLASH_ATTN",
                        .heads = {.only = {64, 128, 256}},
                        .dtypes = kHalfDTypes,
                        .kv = kAnyFp8,
                        .blocks = {.sizes = {{16}, {32}}},
                        .capability = cdna_version(f) > 2,
                        .sink = true,
                        .sliding_window = true,
                        .non_causal = true,
                        .layouts = {{kLBHNC, kLHBNC}},
                        .update_in_forward = false,
                        .update_bypass = true};
  if (f.environment.aiter_shuffle_kv_cache) b.layouts = {kLHBNC, kLBHNC};
  return b;
}

DescribedBackend rocm_octave(const Facts& f) {
  DescribedBackend b = {.name = "ROCM_OCTAVE",
                        .heads = {.only = {256}},
                        .dtypes = kHalfDTypes,
                        .kv = {kOctaveK3V4, kOctaveK3V3, kOctaveK3V3Compact},
                        .blocks = {.sizes = {multiple_of(16)}},
                        .capability = rdna_version(f) == 3 || cdna_version(f) == 3,
                        .layouts = {{kLBHNC, kLBNHC}},
                        .update_in_forward = false};
  if (cdna_version(f) == 3) b.layouts = {kLBHNC};
  return b;
}

DescribedBackend rocm_aiter_mla(const Facts& f) {
  DescribedBackend b = {.name = "ROCM_AITER_MLA",
                        .dtypes = kHalfDTypes,
                        .kv = kAnyFp8,
                        .mla = true,
                        .non_causal = aiter_supported(f) && gcn_arch_is(f, "gfx950"),
                        .pcp = true,
                        .dcp = true,
                        .non_causal_dcp = true,
                        .combination = rules_of(aiter_mla_rules, "ROCM_AITER_MLA"),
                        .decode_lse = true,
                        .reorder_batch_threshold = 1};
  if (aiter_supported(f) && !f.environment.aiter_causal_arg) {
    b.non_causal_raises = "RuntimeError: AITER's MLA decode has no causal argument";
  }
  return b;
}

DescribedBackend rocm_aiter_triton_mla(const Facts& f) {
  DescribedBackend b = rocm_aiter_mla(f);
  b.name = "AITER_TRITON_MLA";
  return b;
}

DescribedBackend rocm_aiter_mla_sparse(const Facts& f) {
  return {.name = "ROCM_AITER_MLA_SPARSE",
          .dtypes = kHalfDTypes,
          .kv = kCommonKv,
          .blocks = {.sizes = {{1}, multiple_of(16)}},
          .mla = true,
          .sparse = true,
          .sink = gcn_arch_is(f, "gfx942") || gcn_arch_is(f, "gfx950"),
          .pcp = true,
          .layouts = {{kLBNHC, kLBHNC, kBLHNC}}};
}

DescribedBackend rocm_deepseek(const Facts& f, const char* name, BlockSizes sizes) {
  return {.name = name,
          .heads = {.only = {512}},
          .dtypes = kBf16Only,
          .kv = {kAuto, kFp8DsMla, kFp8},
          .blocks = {.sizes = std::move(sizes)},
          .capability = f.major() == 9 || f.major() == 10,
          .mla = true,
          .sparse = true,
          .sink = true,
          .has_impl = false};
}
DescribedBackend rocm_flashmla_sparse_dsv4(const Facts& f) {
  return rocm_deepseek(f, "ROCM_FLASHMLA_SPARSE_DSV4", {{256}});
}
DescribedBackend rocm_flashmla_sparse_dsv41(const Facts& f) {
  return rocm_deepseek(f, "ROCM_FLASHMLA_SPARSE_DSV41", {{64}, {128}});
}

DescribedBackend cpu_attn(const Facts& f) {
  DescribedBackend b = {.name = "CPU_ATTN",
                        .heads = {.only = {32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512}},
                        .dtypes = kDTypesWithFloat32,
                        .kv = {kAuto, kFp8, kFp8E4M3, kFp8E5M2},
                        .blocks = {.sizes = {multiple_of(32)}},
                        .attn_types = kAllAttentionTypes,
                        .sliding_window = true,
                        .non_causal = true,
                        .layouts = {{kLBHNC}},
                        .update_in_forward = false,
                        .graph = kNever};
  const bool reads_fp8 = f.environment.cpu_amx_tile || f.environment.cpu_avx512;
  b.kv.accepted = (reads_fp8 ? b.kv : KvDTypes{kAuto}).accepted.with(kFloat16).with(kBFloat16);
  return b;
}

DescribedBackend cpu_mla(const Facts&) {
  return {.name = "CPU_MLA",
          .heads = {.only = {576}},
          .dtypes = kDTypesWithFloat32,
          .kv = {kAuto},
          .blocks = {.sizes = {{16}}, .exact = true, .always_preferred = 16},
          .mla = true,
          .pcp = true,
          .graph = kNever,
          .reorder_batch_threshold = 1};
}

DescribedBackend amx_mla(const Facts& f) {
  DescribedBackend b = cpu_mla(f);
  b.name = "AMX_MLA";
  b.dtypes = kBf16Only;
  b.kv = kPlainKv;
  b.blocks = {.sizes = {multiple_of(32)}};
  return b;
}

DescribedBackend xpu_mla_sparse(const Facts&) {
  return {.name = "XPU_MLA_SPARSE",
          .heads = {.only = {576}},
          .dtypes = kHalfDTypes,
          .kv = kPlainKv,
          .mla = true,
          .sparse = true,
          .pcp = true,
          .graph = kNever};
}

DescribedBackend state_space(const char* name, GraphSupport graph, bool update_block_table) {
  return {.name = name,
          .ssm = true,
          .query_lens_mismatch = false,
          .has_impl = false,
          .graph = graph,
          .reorder_batch_threshold = 1,
          .update_block_table = update_block_table};
}
DescribedBackend mamba1(const Facts&) { return state_space("MAMBA1_ATTN", kUniformBatch, true); }
DescribedBackend mamba2(const Facts&) {
  DescribedBackend b = state_space("MAMBA2_ATTN", kUniformBatch, true);
  b.query_lens_mismatch = true;  // unless the cache replays states
  return b;
}
DescribedBackend short_conv(const Facts&) {
  return state_space("SHORT_CONV_ATTN", kUniformBatch, true);
}
DescribedBackend linear(const Facts&) {
  return state_space("LINEAR_ATTN", kUniformSingleTokenDecode, false);
}
DescribedBackend gdn_attn(const Facts&) { return state_space("GDN_ATTN", kUniformBatch, false); }

constexpr BackendRow kOtherRows[] = {
    {"ROCM_ATTN", rocm_attn, "cuda,rocm"},
    {"ROCM_SEGMENTED_ATTN", rocm_segmented_attn, "rocm"},
    {"ROCM_AITER_UNIFIED_ATTN", rocm_aiter_unified_attn, "rocm"},
    {"ROCM_AITER_FA", rocm_aiter_fa, "rocm"},
    {"ROCM_OCTAVE", rocm_octave, "rocm"},
    {"ROCM_AITER_MLA", rocm_aiter_mla, "rocm"},
    {"ROCM_AITER_TRITON_MLA", rocm_aiter_triton_mla, "rocm"},
    {"ROCM_AITER_MLA_SPARSE", rocm_aiter_mla_sparse, "rocm"},
    {"ROCM_FLASHMLA_SPARSE_DSV4", rocm_flashmla_sparse_dsv4, "rocm"},
    {"ROCM_FLASHMLA_SPARSE_DSV41", rocm_flashmla_sparse_dsv41, "rocm"},
    {"CPU_ATTN", cpu_attn, "cpu"},
    {"CPU_MLA", cpu_mla, "cpu"},
    {"AMX_MLA", amx_mla, "cpu"},
    {"XPU_MLA_SPARSE", xpu_mla_sparse, "xpu"}};

constexpr BackendRow kMambaRows[] = {{"MAMBA1", mamba1, "cuda,rocm,xpu,cpu"},
                                     {"MAMBA2", mamba2, "cuda,rocm,xpu,cpu"},
                                     {"SHORT_CONV", short_conv, "cuda,rocm,xpu,cpu"},
                                     {"LINEAR", linear, "cuda,rocm,xpu,cpu"},
                                     {"GDN_ATTN", gdn_attn, "cuda,rocm,xpu,cpu"}};

}  // namespace

DescribedBackend xpu_flash_attn_mla(const Facts& f) {
  DescribedBackend b = flash_attn_mla(f);
  b.heads = {.only = {576}};
  b.blocks = {.sizes = {multiple_of(64)}};
  b.capability = true;
  b.dcp = false;
  b.graph = kUniformSingleTokenDecode;
  b.reorder_batch_threshold = 1;
  return b;
}

std::span<const BackendRow> other_platform_backends() { return kOtherRows; }
std::span<const BackendRow> mamba_backends() { return kMambaRows; }

}  // namespace attn
