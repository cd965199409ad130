// The registries. Members and paths are vLLM 0.33.0's.
#include "attn/backend_registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "attn/vllm_error.h"

namespace attn {
namespace {

struct DefaultPath {
  std::string_view name;
  std::string_view path;
};

// TORCH_SDPA serves vision encoders only; NO_ATTENTION's module does not exist; CUSTOM, which has
// no value, follows in both registries.
constexpr DefaultPath kAttention[] = {
    {"FLASH_ATTN", "vllm.v1.attention.backends.flash_attn.FlashAttentionBackend"},
    {"FLASH_ATTN_DIFFKV",
     "vllm.v1.attention.backends.flash_attn_diffkv.FlashAttentionDiffKVBackend"},
    {"TRITON_ATTN", "vllm.v1.attention.backends.triton_attn.TritonAttentionBackend"},
    {"TRITON_ATTN_DIFFKV",
     "vllm.v1.attention.backends.triton_attn_diffkv.TritonAttentionDiffKVBackend"},
    {"TRITON_FLASH_ATTN",
     "vllm.v1.attention.backends.triton_flash_attn.TritonFlashAttentionBackend"},
    {"ROCM_ATTN", "vllm.v1.attention.backends.rocm_attn.RocmAttentionBackend"},
    {"ROCM_SEGMENTED_ATTN",
     "vllm.v1.attention.backends.rocm_segmented_attn.RocmSegmentedAttentionBackend"},
    {"ROCM_AITER_MLA", "vllm.v1.attention.backends.mla.rocm_aiter_mla.AiterMLABackend"},
    {"ROCM_AITER_TRITON_MLA",
     "vllm.v1.attention.backends.mla.aiter_triton_mla.AiterTritonMLABackend"},
    {"ROCM_AITER_FA", "vllm.v1.attention.backends.rocm_aiter_fa.AiterFlashAttentionBackend"},
    {"ROCM_AITER_MLA_SPARSE",
     "vllm.v1.attention.backends.mla.rocm_aiter_mla_sparse.ROCMAiterMLASparseBackend"},
    {"XPU_MLA_SPARSE", "vllm.v1.attention.backends.mla.xpu_mla_sparse.XPUMLASparseBackend"},
    {"TORCH_SDPA", ""},
    {"FLASHINFER", "vllm.v1.attention.backends.flashinfer.FlashInferBackend"},
    {"TRITON_FLASHINFER", "vllm.v1.attention.backends.triton_flashinfer.TritonFlashInferBackend"},
    {"FLASHINFER_MLA", "vllm.v1.attention.backends.mla.flashinfer_mla.FlashInferMLABackend"},
    {"TOKENSPEED_MLA", "vllm.v1.attention.backends.mla.tokenspeed_mla.TokenspeedMLABackend"},
    {"FLASHINFER_MLA_SPARSE",
     "vllm.v1.attention.backends.mla.flashinfer_mla_sparse.FlashInferMLASparseTRTLLMBackend"},
    {"FLASHINFER_MLA_SPARSE_SM120",
     "vllm.v1.attention.backends.mla.flashinfer_mla_sparse.FlashInferMLASparseSM120Backend"},
    {"FLASHINFER_MLA_SPARSE_SM90",
     "vllm.v1.attention.backends.mla.flashinfer_mla_sparse_sm90.FlashInferMLASparseSM90Backend"},
    {"TRITON_MLA", "vllm.v1.attention.backends.mla.triton_mla.TritonMLABackend"},
    {"CUTLASS_MLA", "vllm.v1.attention.backends.mla.cutlass_mla.CutlassMLABackend"},
    {"FLASHMLA", "vllm.v1.attention.backends.mla.flashmla.FlashMLABackend"},
    {"FLASHMLA_SPARSE", "vllm.v1.attention.backends.mla.flashmla_sparse.FlashMLASparseBackend"},
    {"FLASHMLA_SPARSE_DSV4", "vllm.models.deepseek_v4.sparse_mla.DeepseekV4FlashMLABackend"},
    {"FLASHINFER_MLA_SPARSE_DSV4",
     "vllm.models.deepseek_v4.nvidia.flashinfer_sparse.DeepseekV4FlashInferMLASparseBackend"},
    {"ROCM_FLASHMLA_SPARSE_DSV4",
     "vllm.models.deepseek_v4.amd.rocm.DeepseekV4ROCMAiterMLASparseBackend"},
    {"FLASHMLA_SPARSE_DSV41", "vllm.models.deepseek_v41.sparse_mla.DeepseekV4FlashMLABackend"},
    {"FLASHINFER_MLA_SPARSE_DSV41",
     "vllm.models.deepseek_v41.nvidia.flashinfer_sparse.DeepseekV4FlashInferMLASparseBackend"},
    {"ROCM_FLASHMLA_SPARSE_DSV41",
     "vllm.models.deepseek_v41.amd.rocm.DeepseekV41ROCMAiterMLASparseBackend"},
    {"FLASHMLA_MEGA_ATTN_DSV41", "vllm.models.deepseek_v41.sparse_mla.FlashMLAMegaAttnBackend"},
    {"B12X", "vllm.v1.attention.backends.b12x.B12xPagedAttentionBackend"},
    {"FLASH_ATTN_MLA", "vllm.v1.attention.backends.mla.flashattn_mla.FlashAttnMLABackend"},
    {"FLASH_ATTN_MLA_SPARSE",
     "vllm.v1.attention.backends.mla.flashattn_mla_sparse.FlashAttnMLASparseBackend"},
    {"FLASH_ATTN_MLA_SPARSE_FA4",
     "vllm.v1.attention.backends.mla.flashattn_mla_sparse.FlashAttnMLASparseFA4Backend"},
    {"MINIMAX_M3_SPARSE", "vllm.models.minimax_m3.common.sparse_attention.MiniMaxM3SparseBackend"},
    {"CUTLASS_MSA",
     "vllm.models.minimax_m3.nvidia.sparse_attention_msa.MiniMaxM3SparseCutlassBackend"},
    {"TRITON_MSA",
     "vllm.models.minimax_m3.nvidia.sparse_attention_msa.MiniMaxM3SparseTritonBackend"},
    {"STEP5_DSA", "vllm.models.step5.nvidia.sparse_attention.Step5DSAAttentionBackend"},
    {"NO_ATTENTION", "vllm.v1.attention.backends.no_attention.NoAttentionBackend"},
    {"FLEX_ATTENTION", "vllm.v1.attention.backends.flex_attention.FlexAttentionBackend"},
    {"HPC_ATTN", "vllm.v1.attention.backends.hpc_attn.HpcAttentionBackend"},
    {"ROCM_AITER_UNIFIED_ATTN",
     "vllm.v1.attention.backends.rocm_aiter_unified_attn.RocmAiterUnifiedAttentionBackend"},
    {"CPU_ATTN", "vllm.v1.attention.backends.cpu_attn.CPUAttentionBackend"},
    {"CPU_MLA", "vllm.v1.attention.backends.mla.cpu_mla.CPUMLABackend"},
    {"AMX_MLA", "vllm.v1.attention.backends.mla.amx_mla.AMXMLABackend"},
    {"TURBOQUANT", "vllm.v1.attention.backends.turboquant_attn.TurboQuantAttentionBackend"},
    {"ROCM_OCTAVE", "vllm.v1.attention.backends.rocm_octave_attn.RocmOctaveAttentionBackend"},
    {"ULTRAQUANT", "vllm.v1.attention.backends.ultraquant_attn.UltraQuantAttentionBackend"},
};

constexpr DefaultPath kMamba[] = {
    {"MAMBA1", "vllm.v1.attention.backends.mamba1_attn.Mamba1AttentionBackend"},
    {"MAMBA2", "vllm.v1.attention.backends.mamba2_attn.Mamba2AttentionBackend"},
    {"SHORT_CONV", "vllm.v1.attention.backends.short_conv_attn.ShortConvAttentionBackend"},
    {"LINEAR", "vllm.v1.attention.backends.linear_attn.LinearAttentionBackend"},
    {"GDN_ATTN", "vllm.v1.attention.backends.gdn_attn.GDNAttentionBackend"},
};

constexpr std::string_view kMissingModule = "vllm.v1.attention.backends.no_attention";

// Names of the enum's own methods, which no member may take.
constexpr std::array kReserved = {"register",       "get_path", "get_class", "is_overridden",
                                  "clear_override", "name",     "value"};

bool is_identifier(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

std::string without_last_part(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return std::string(dot == std::string_view::npos ? path : path.substr(0, dot));
}

bool is_default_module(std::string_view module) {
  const auto names_it = [module](const DefaultPath& entry) {
    return without_last_part(entry.path) == module;
  };
  return module != kMissingModule &&
         (std::any_of(std::begin(kAttention), std::end(kAttention), names_it) ||
          std::any_of(std::begin(kMamba), std::end(kMamba), names_it));
}

// The first package on the way to a module that is not there; packages of vLLM exist.
std::string missing_package(std::string_view module) {
  if (module == "vllm" || module.starts_with("vllm.")) return std::string(module);
  return std::string(module.substr(0, module.find('.')));
}

}  // namespace

BackendRegistry::BackendRegistry(RegistryKind kind) : kind_(kind) {
  const auto take = [this](const auto& entries) {
    for (const DefaultPath& entry : entries) {
      members_.push_back({std::string(entry.name), std::string(entry.path)});
    }
  };
  if (kind == RegistryKind::kAttention) {
    take(kAttention);
  } else {
    take(kMamba);
  }
  members_.push_back({"CUSTOM", std::nullopt});
}

std::string_view BackendRegistry::enum_name() const {
  return kind_ == RegistryKind::kAttention ? "AttentionBackendEnum" : "MambaAttentionBackendEnum";
}

std::string BackendRegistry::printed(std::string_view name) const {
  return fmt::format("{}.{}", enum_name(), name);
}

const BackendRegistry::Member* BackendRegistry::find(std::string_view name) const {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [name](const Member& member) { return member.name == name; });
  return found == members_.end() ? nullptr : &*found;
}

const BackendRegistry::Member& BackendRegistry::at(std::string_view name) const {
  if (const Member* member = find(name)) return *member;
  std::vector<std::string_view> names;
  for (const Member& member : members_) names.push_back(member.name);
  throw VllmError("ValueError",
                  fmt::format("Unknown attention backend: '{}'. Valid options are: {}", name,
                              fmt::join(names, ", ")));
}

const BackendRegistry::Member& BackendRegistry::by_value(std::string_view value) const {
  const auto found = std::find_if(members_.rbegin(), members_.rend(), [value](const Member& m) {
    return m.value && *m.value == value;
  });
  if (found != members_.rend()) return *found;
  throw VllmError("ValueError", fmt::format("'{}' is not a valid {}", value, enum_name()));
}

bool BackendRegistry::is_overridden(std::string_view name) const {
  return overrides_.contains(at(name).name);
}

std::string BackendRegistry::path(std::string_view name) const {
  const Member& member = at(name);
  const auto found = overrides_.find(member.name);
  const std::string path = found != overrides_.end() ? found->second : member.value.value_or("");
  if (!path.empty()) return path;
  throw VllmError(
      "ValueError",
      fmt::format("Backend {0} must be registered before use. Use register_backend(Backend.{0}, "
                  "'your.module.YourClass')",
                  name));
}

std::string BackendRegistry::module(std::string_view name) const {
  return without_last_part(path(name));
}

void BackendRegistry::expect_class(std::string_view name) const {
  const std::string wanted = module(name);
  if (is_default_module(wanted)) return;
  throw VllmError("ModuleNotFoundError",
                  fmt::format("No module named '{}'", missing_package(wanted)));
}

void BackendRegistry::override_path(std::string_view name, std::string class_path) {
  overrides_[at(name).name] = std::move(class_path);
}

void BackendRegistry::clear_override(std::string_view name) { overrides_.erase(at(name).name); }

void BackendRegistry::add(std::string_view name, std::string class_path) {
  if (contains(name)) {
    throw VllmError("ValueError",
                    fmt::format("Backend {0} already exists in {1}. Use register_backend({1}.{0}, "
                                "'{2}') to override.",
                                name, enum_name(), class_path));
  }
  if (!is_identifier(name) ||
      std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end()) {
    throw VllmError("ValueError", fmt::format("Invalid or reserved backend name: {}", name));
  }
  members_.push_back({std::string(name), class_path});
  if (!class_path.empty()) overrides_[std::string(name)] = std::move(class_path);
}

}  // namespace attn
