// Everything about the machine, the installation and the run that a selection looks at, as data.
// Nothing is read from the process.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "attn/cache_dtype.h"
#include "attn/selector_config.h"

namespace attn {

enum class Platform : std::uint8_t { kCuda, kRocm, kXpu, kCpu };

std::string_view name(Platform platform);  // "cuda"
std::optional<Platform> platform_from_name(std::string_view name);

// Compared as a pair.
struct DeviceCapability {
  int major = 0;
  int minor = 0;

  auto operator<=>(const DeviceCapability&) const = default;
};

// Attributes of the model's text config; none = the attribute is missing.
struct HfFacts {
  std::optional<int> qk_nope_head_dim;
  std::optional<int> qk_rope_head_dim;
  std::optional<int> v_head_dim;
  std::optional<int> kv_lora_rank;
  std::optional<int> index_topk;
  std::optional<double> attn_logit_softcapping;

  bool operator==(const HfFacts&) const = default;
};

struct ModelFacts {
  int head_size = 128;
  int num_heads = 32;
  int num_kv_heads = 8;
  bool is_mm_prefix_lm = false;
  std::optional<int> rswa_window;
  bool is_diffusion = false;
  AttentionType attn_type = AttentionType::kDecoder;
  HfFacts hf;

  bool operator==(const ModelFacts&) const = default;
};

enum class B12xState : std::uint8_t { kSupported, kUnsupported, kMissing };

struct SelectorEnvironment {
  // CUDA installation.
  bool fa2_built = true;
  bool fa3_built = true;
  bool fa4_built = true;
  std::optional<std::string> fa4_cute_error;  // repr of what importing FA4's entry point raised
  bool nvidia_artifactory = true;             // trtllm-gen kernels installed or downloadable
  bool flashinfer = true;
  bool flashinfer_sparse_mla_sm120 = true;
  bool flashinfer_sm90_nope_mla = true;
  bool flashmla_c = true;
  bool flashmla_extension_c = true;
  bool flashmla_mega_attn_ops = true;
  bool flashmla_mega_permute_ops = true;
  bool tokenspeed_mla = true;
  B12xState b12x = B12xState::kSupported;
  std::map<std::string, std::string> import_errors;  // backend -> "ExcType: message"

  // The run.
  bool batch_invariant = false;
  std::optional<int> flash_attn_version;  // 2, 3, 4
  std::optional<bool> use_trtllm_attention;
  CacheDType cache_dtype = CacheDType::kAuto;  // of the run; a layer's may differ
  int dcp_size = 1;
  int pcp_size = 1;
  std::optional<ModelFacts> model;

  // CPU.
  std::string cpu_arch = "X86";
  bool cpu_amx_tile = false;
  bool cpu_avx512 = false;

  // ROCm.
  std::string gcn_arch = "gfx942";
  bool aiter_found = false;    // the library
  bool aiter_enabled = false;  // its master switch
  bool aiter_mla = true;
  bool aiter_mha = true;
  bool aiter_causal_arg = true;  // its MLA decode has a causal argument
  bool aiter_shuffle_kv_cache = false;
  bool kv_connector_instance = false;

  bool operator==(const SelectorEnvironment&) const = default;
};

// A platform, its device and the environment: what a backend's capabilities depend on.
struct SelectorFacts {
  Platform platform = Platform::kCuda;
  std::optional<DeviceCapability> capability;  // none on CPU and XPU
  SelectorEnvironment environment;

  int major() const { return capability ? capability->major : -1; }
  bool is(int major, int minor) const { return capability == DeviceCapability{major, minor}; }
  bool at_least(int major, int minor) const {
    return capability && *capability >= DeviceCapability{major, minor};
  }
};

// The capability that the digits behind "gfx" mean: gfx942 9.4, gfx1100 11.0. Throws Error for
// another form.
DeviceCapability capability_of_gcn_arch(std::string_view gcn_arch);

}  // namespace attn
