// The MLA backends, in the order of columns heads, dtypes, KV dtypes, blocks, capability.
#include "selector/combination_rules.h"
#include "selector/declared_lists.h"
#include "selector/kernel_facts.h"
#include "selector/vllm_backends.h"

namespace attn {
namespace {

using enum CacheDType;
using enum GraphSupport;

using Facts = SelectorFacts;

const std::vector<int> kDenseHeads = {320, 512, 576};

bool is_hopper_or_blackwell(const Facts& f) { return f.major() == 9 || f.major() == 10; }

DescribedBackend flashinfer_mla(const Facts& f) {
  return {.name = "FLASHINFER_MLA",
          .heads = {.only = kDenseHeads},
          .dtypes = kHalfDTypes,
          .kv = kCommonKv,
          .blocks = {.sizes = {{32}, {64}}},
          .capability = f.major() == 10,
          .mla = true,
          .non_causal = true,
          .pcp = true,
          .dcp = true,
          .non_causal_dcp = true,
          .combination = rules_of(flashinfer_mla_rules, "FLASHINFER_MLA"),
          .decode_lse = true,
          .graph = kAlways,
          .reorder_batch_threshold = 1};
}

DescribedBackend tokenspeed_mla(const Facts& f) {
  return {.name = "TOKENSPEED_MLA",
          .heads = {.only = kDenseHeads},
          .dtypes = kHalfDTypes,
          .kv = {kFp8, kFp8E4M3},
          .blocks = {.sizes = {{32}, {64}}},
          .capability = f.major() == 10,
          .mla = true,
          .non_causal = true,
          .pcp = true,
          .dcp = true,
          .non_causal_dcp = true,
          .combination = rules_of(tokenspeed_mla_rules, "TOKENSPEED_MLA"),
          .decode_lse = true,
          .lse_base_e = false,
          .reorder_batch_threshold = 1};
}

DescribedBackend cutlass_mla(const Facts& f) {
  return {.name = "CUTLASS_MLA",
          .heads = {.only = kDenseHeads},
          .dtypes = kHalfDTypes,
          .kv = kCommonKv,
          .blocks = {.sizes = {{128}}},
          .capability = f.major() == 10,
          .mla = true,
          .pcp = true,
          .dcp = true,
          .decode_lse = true,
          .graph = kUniformSingleTokenDecode,
          .reorder_batch_threshold = 1};
}

DescribedBackend flashmla(const Facts& f) {
  return {.name = "FLASHMLA",
          .heads = {.only = kDenseHeads},
          .dtypes = kHalfDTypes,
          .kv = kCommonKv,
          .blocks = {.sizes = {{64}}},
          .capability = is_hopper_or_blackwell(f),
          .mla = true,
          .pcp = true,
          .dcp = true,
          .combination = rules_of(flashmla_rules, "FLASHMLA"),
          .decode_lse = true,
          .reorder_batch_threshold = 128};
}

DescribedBackend triton_mla(const Facts&) {
  return {.name = "TRITON_MLA",
          .dtypes = kHalfDTypes,
          .kv = kCommonKv,
          .blocks = {.sizes = {multiple_of(16)}},
          .mla = true,
          .non_causal = true,
          .batch_invariance = true,
          .pcp = true,
          .dcp = true,
          .decode_lse = true,
          .reorder_batch_threshold = 1};
}

DescribedBackend flashinfer_mla_sparse(const Facts& f) {
  return {.name = "FLASHINFER_MLA_SPARSE",
          .heads = {.only = {512, 576}},
          .dtypes = kHalfDTypes,
          .kv = kCommonKv,
          .blocks = {.sizes = {multiple_of(32)}},
          .capability = f.major() == 10,
          .mla = true,
          .sparse = true,
          .pcp = true,
          .dcp = true,
          .combination = rules_of(flashinfer_sparse_rules, "FLASHINFER_MLA_SPARSE"),
          .decode_lse = true,
          .lse_base_e = false};
}

DescribedBackend flashinfer_mla_sparse_sm120(const Facts& f) {
  return {.name = "FLASHINFER_MLA_SPARSE_SM120",
          .heads = {.only = {512, 576}},
          .dtypes = kBf16Only,
          .kv = {kAuto, kFp8, kFp8E4M3, kFp8DsMla},
          .blocks = {.sizes = {multiple_of(64)}},
          .capability = f.major() == 12,
          .mla = true,
          .sparse = true,
          .pcp = true,
          .combination = rules_of(sparse_sm120_rules, "FLASHINFER_MLA_SPARSE_SM120")};
}

DescribedBackend flashinfer_mla_sparse_sm90(const Facts& f) {
  return {.name = "FLASHINFER_MLA_SPARSE_SM90",
          .heads = {.only = {512, 576}},
          .dtypes = kBf16Only,
          .kv = {kAuto, kBFloat16, kFp8, kFp8E4M3},
          .blocks = {.sizes = {multiple_of(64)}},
          .capability = f.major() == 9,
          .mla = true,
          .sparse = true,
          .pcp = true,
          .combination = rules_of(sparse_sm90_rules, "FLASHINFER_MLA_SPARSE_SM90")};
}

DescribedBackend flashmla_sparse(const Facts& f) {
  return {.name = "FLASHMLA_SPARSE",
          .heads = {.only = {576, 512}},
          .dtypes = kBf16Only,
          .kv = {kAuto, kBFloat16, kFp8DsMla, kFp8, kNvfp4DsMla},
          .blocks = {.sizes = {multiple_of(64)}},
          .capability = is_hopper_or_blackwell(f),
          .mla = true,
          .sparse = true,
          .pcp = true,
          .dcp = true,
          .combination = rules_of(flashmla_sparse_rules, "FLASHMLA_SPARSE"),
          .decode_lse = true};
}

DescribedBackend flash_attn_mla_sparse(const Facts& f) {
  return {.name = "FLASH_ATTN_MLA_SPARSE",
          .dtypes = kHalfDTypes,
          .kv = kPlainKv,
          .blocks = {.sizes = {multiple_of(64)}},
          .capability = f.major() == 9,
          .mla = true,
          .sparse = true,
          .pcp = true,
          .combination = rules_of(flash_attn_sparse_rules, "FLASH_ATTN_MLA_SPARSE")};
}

DescribedBackend flash_attn_mla_sparse_fa4(const Facts& f) {
  return {.name = "FLASH_ATTN_MLA_SPARSE_FA4",
          .heads = {.only = {576}},
          .dtypes = kBf16Only,
          .kv = {kAuto, kBFloat16},
          .blocks = {.sizes = {multiple_of(64)}},
          .capability = f.major() == 10,
          .mla = true,
          .sparse = true,
          .pcp = true,
          .dcp = true,
          .combination = rules_of(flash_attn_sparse_fa4_rules, "FLASH_ATTN_MLA_SPARSE_FA4"),
          .decode_lse = true};
}

// What the backends of DeepSeek V4 and V4.1 have in common.
DescribedBackend deepseek_v4(const char* name, KvDTypes kv, int block_size, bool capability) {
  return {.name = name,
          .heads = {.only = {512}},
          .dtypes = kBf16Only,
          .kv = std::move(kv),
          .blocks = {.sizes = {{block_size}}},
          .capability = capability,
          .mla = true,
          .sparse = true,
          .sink = true,
          .has_impl = false,
          .graph = kAlways};
}

DescribedBackend flashmla_sparse_dsv4(const Facts& f) {
  return deepseek_v4("FLASHMLA_SPARSE_DSV4", {kAuto, kFp8DsMla, kFp8}, 256,
                     is_hopper_or_blackwell(f));
}

DescribedBackend flashmla_sparse_dsv41(const Facts& f) {
  DescribedBackend b = deepseek_v4("FLASHMLA_SPARSE_DSV41", {kAuto, kFp8DsMla, kFp8},
                                   f.major() == 9 ? 64 : 128, is_hopper_or_blackwell(f));
  b.pcp = true;
  return b;
}

DescribedBackend flashmla_mega_attn_dsv41(const Facts& f) {
  DescribedBackend b = deepseek_v4("FLASHMLA_MEGA_ATTN_DSV41",
                                   {kAuto, kFp8DsMla, kFp8, kNvfp4DsMla}, 128, f.major() == 10);
  b.combination = rules_of(mega_attn_rules, b.name);
  return b;
}

DescribedBackend flashinfer_deepseek(const Facts& f, const char* name, int block_size) {
  DescribedBackend b = deepseek_v4(name, {kAuto, kBFloat16, kFp8, kFp8E4M3, kFp8DsMla}, block_size,
                                   f.major() == 10 || f.major() == 12);
  b.combination = rules_of(flashinfer_dsv4_rules, b.name);
  return b;
}
DescribedBackend flashinfer_mla_sparse_dsv4(const Facts& f) {
  return flashinfer_deepseek(f, "FLASHINFER_MLA_SPARSE_DSV4", 256);
}
DescribedBackend flashinfer_mla_sparse_dsv41(const Facts& f) {
  return flashinfer_deepseek(f, "FLASHINFER_MLA_SPARSE_DSV41", 128);
}

constexpr BackendRow kMlaRows[] = {
    {"FLASHINFER_MLA", flashinfer_mla, "cuda"},
    {"TOKENSPEED_MLA", tokenspeed_mla, "cuda"},
    {"CUTLASS_MLA", cutlass_mla, "cuda"},
    {"FLASH_ATTN_MLA", flash_attn_mla, "cuda"},
    {"FLASHMLA", flashmla, "cuda"},
    {"TRITON_MLA", triton_mla, "cuda,rocm,xpu"},
    {"FLASHINFER_MLA_SPARSE", flashinfer_mla_sparse, "cuda"},
    {"FLASHINFER_MLA_SPARSE_SM120", flashinfer_mla_sparse_sm120, "cuda"},
    {"FLASHINFER_MLA_SPARSE_SM90", flashinfer_mla_sparse_sm90, "cuda"},
    {"FLASHMLA_SPARSE", flashmla_sparse, "cuda"},
    {"FLASH_ATTN_MLA_SPARSE", flash_attn_mla_sparse, "cuda"},
    {"FLASH_ATTN_MLA_SPARSE_FA4", flash_attn_mla_sparse_fa4, "cuda"},
    {"FLASHMLA_SPARSE_DSV4", flashmla_sparse_dsv4, "cuda"},
    {"FLASHMLA_SPARSE_DSV41", flashmla_sparse_dsv41, "cuda"},
    {"FLASHMLA_MEGA_ATTN_DSV41", flashmla_mega_attn_dsv41, "cuda"},
    {"FLASHINFER_MLA_SPARSE_DSV4", flashinfer_mla_sparse_dsv4, "cuda"},
    {"FLASHINFER_MLA_SPARSE_DSV41", flashinfer_mla_sparse_dsv41, "cuda"}};

}  // namespace

DescribedBackend flash_attn_mla(const Facts& f) {
  return {.name = "FLASH_ATTN_MLA",
          .heads = {.only = kDenseHeads},
          .dtypes = kHalfDTypes,
          .kv = kPlainKv,
          .blocks = {.sizes = {multiple_of(16)}},
          .capability = f.major() == 9,
          .mla = true,
          .batch_invariance = true,
          .pcp = true,
          .dcp = true,
          .combination = rules_of(flash_attn_mla_rules, "FLASH_ATTN_MLA"),
          .decode_lse = true,
          .reorder_batch_threshold = 512};
}

std::span<const BackendRow> mla_backends() { return kMlaRows; }

}  // namespace attn
