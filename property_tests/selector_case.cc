#include "property_tests/selector_case.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string_view>

#include "selector/vllm_backends.h"

namespace attn::property_tests {
namespace {

using Case = SelectionCase;
using Config = AttentionSelectorConfig;
using Environment = SelectorEnvironment;

struct Field {
  std::string_view name;
  void (*set)(Case& one, int value);
};

template <class T, std::size_t N>
const T& pick(const T (&options)[N], int value) {
  return options[static_cast<std::size_t>(value) % N];
}

template <bool Config::*Switch>
void flip(Case& one, int) {
  one.request.config.*Switch = !(one.request.config.*Switch);
}
template <bool Environment::*Switch>
void flip(Case& one, int) {
  one.facts.environment.*Switch = !(one.facts.environment.*Switch);
}

// With the attributes of a DeepSeek model: rules ask for some of them without a default.
ModelFacts& model(Case& one) {
  auto& facts = one.facts.environment.model;
  if (!facts) facts.emplace().hf = {128, 64, 128, 512, 2048, std::nullopt};
  return *facts;
}
template <std::optional<int> HfFacts::*Attribute>
void set_attribute(Case& one, int value) {
  const int options[] = {0, 64, 128, 192, 256, 512, 2048, 1000};
  model(one).hf.*Attribute = pick(options, value);
}
template <std::optional<int> HfFacts::*Attribute>
void set_or_remove_attribute(Case& one, int value) {
  set_attribute<Attribute>(one, value);
  if (value % 5 == 4) (model(one).hf.*Attribute).reset();
}

std::optional<CacheDType> any_kv(int value) {
  if (value % (kNumCacheDTypes + 1) == kNumCacheDTypes) return std::nullopt;
  return static_cast<CacheDType>(value % (kNumCacheDTypes + 1));
}

const std::vector<BackendRegistry::Member>& members() {
  static const BackendRegistry kRegistry(RegistryKind::kAttention);
  return kRegistry.members();
}
const std::string& any_member(int value) {
  return members()[static_cast<std::size_t>(value) % members().size()].name;
}

void set_import_error(Case& one, int value) {
  const char* errors[] = {"ImportError: no flash", "ModuleNotFoundError: No module named 'kernels'",
                          "OSError: libcuda.so: cannot open", "PermissionError: denied",
                          "RuntimeError: no driver"};
  one.facts.environment.import_errors[any_member(value)] = pick(errors, value / 7);
}

void set_override(Case& one, int value) {
  const char* paths[] = {"gone.module.Backend",
                         "vllm.v1.attention.backends.flex_attention.FlexAttentionBackend", "",
                         "vllm.v1.attention.backends.triton_attn.TritonAttentionBackend"};
  one.overrides[any_member(value)] = pick(paths, value / 7);
}

void set_capability(Case& one, int value) {
  constexpr DeviceCapability kOptions[] = {{9, 0},  {10, 0}, {12, 0}, {8, 0}, {7, 5}, {8, 9},
                                           {10, 3}, {11, 0}, {12, 1}, {9, 4}, {6, 1}, {13, 0}};
  one.facts.capability = pick(kOptions, value);
}

void set_head_size(Case& one, int value) {
  constexpr int kOptions[] = {128, 64, 256, 512, 576, 320, 192, 96,  80,
                              40,  32, 16,  24,  100, 264, 288, 520, 2048};
  one.request.config.head_size = pick(kOptions, value);
}

void set_block_size(Case& one, int value) {
  constexpr int kOptions[] = {16, 64, 128, 32, 256, 8, 1, 48, 24, 96, 100, 2048};
  if (value % 13 == 12) {
    one.request.config.block_size.reset();
  } else {
    one.request.config.block_size = pick(kOptions, value);
  }
}

// Those of the request come first.
constexpr Field kFields[] = {
    {"head_size", set_head_size},
    {"dtype",
     [](Case& one, int value) {
       constexpr DType kOptions[] = {DType::kBF16, DType::kF16, DType::kF32};
       one.request.config.dtype = pick(kOptions, value);
     }},
    {"kv_cache_dtype",
     [](Case& one, int value) { one.request.config.kv_cache_dtype = any_kv(value); }},
    {"block_size", set_block_size},
    {"backend", [](Case& one, int value) { one.request.backend = any_member(value); }},
    {"num_heads",
     [](Case& one, int value) {
       const std::optional<int> options[] = {16, 17, 32, 128, 1, std::nullopt};
       one.request.num_heads = pick(options, value);
     }},
    {"attn_type",
     [](Case& one, int value) {
       one.request.config.attn_type = {static_cast<AttentionType>(value % kNumAttentionTypes),
                                       value / kNumAttentionTypes % 2 == 1};
     }},
    {"use_mla", flip<&Config::use_mla>},
    {"has_sink", flip<&Config::has_sink>},
    {"use_sparse", flip<&Config::use_sparse>},
    {"use_mm_prefix", flip<&Config::use_mm_prefix>},
    {"use_per_head_quant_scales", flip<&Config::use_per_head_quant_scales>},
    {"has_sliding_window", flip<&Config::has_sliding_window>},
    {"use_non_causal", flip<&Config::use_non_causal>},
    {"use_batch_invariant", flip<&Config::use_batch_invariant>},
    {"use_kv_connector", flip<&Config::use_kv_connector>},
    {"use_pcp", flip<&Config::use_pcp>},
    {"use_adaptive_verification", flip<&Config::use_adaptive_verification>},
    {"use_dcp", flip<&Config::use_dcp>},
    {"use_rswa", flip<&Config::use_rswa>},
    {"capability", set_capability},
    {"gcn_arch",
     [](Case& one, int value) {
       const char* options[] = {"gfx942",  "gfx950",  "gfx90a",  "gfx1100",
                                "gfx1201", "gfx1250", "gfx1151", "gfx1200"};
       one.facts.environment.gcn_arch = pick(options, value);
     }},
    {"import_error", set_import_error},
    {"override", set_override},
    {"fa2_built", flip<&Environment::fa2_built>},
    {"fa3_built", flip<&Environment::fa3_built>},
    {"fa4_built", flip<&Environment::fa4_built>},
    {"fa4_cute_error",
     [](Case& one, int) { one.facts.environment.fa4_cute_error = "RuntimeError('no cute')"; }},
    {"nvidia_artifactory", flip<&Environment::nvidia_artifactory>},
    {"flashinfer", flip<&Environment::flashinfer>},
    {"flashinfer_sparse_mla_sm120", flip<&Environment::flashinfer_sparse_mla_sm120>},
    {"flashinfer_sm90_nope_mla", flip<&Environment::flashinfer_sm90_nope_mla>},
    {"flashmla_c", flip<&Environment::flashmla_c>},
    {"flashmla_extension_c", flip<&Environment::flashmla_extension_c>},
    {"flashmla_mega_attn_ops", flip<&Environment::flashmla_mega_attn_ops>},
    {"flashmla_mega_permute_ops", flip<&Environment::flashmla_mega_permute_ops>},
    {"tokenspeed_mla", flip<&Environment::tokenspeed_mla>},
    {"b12x",
     [](Case& one, int value) { one.facts.environment.b12x = static_cast<B12xState>(value % 3); }},
    {"batch_invariant", flip<&Environment::batch_invariant>},
    {"flash_attn_version",
     [](Case& one, int value) { one.facts.environment.flash_attn_version = 2 + value % 3; }},
    {"use_trtllm_attention",
     [](Case& one, int value) { one.facts.environment.use_trtllm_attention = value % 2 == 1; }},
    {"cache_dtype",
     [](Case& one, int value) {
       one.facts.environment.cache_dtype = any_kv(value).value_or(CacheDType::kUltraquant4Bit);
     }},
    {"dcp_size", [](Case& one, int value) { one.facts.environment.dcp_size = 1 + value % 3; }},
    {"pcp_size", [](Case& one, int value) { one.facts.environment.pcp_size = 1 + value % 3; }},
    {"model", [](Case& one, int) { model(one); }},
    {"model.head_size",
     [](Case& one, int value) {
       constexpr int kOptions[] = {256, 512, 128, 192, 64};
       model(one).head_size = pick(kOptions, value);
     }},
    {"model.num_heads",
     [](Case& one, int value) {
       constexpr int kOptions[] = {8, 16, 12, 128, 32};
       model(one).num_heads = pick(kOptions, value);
     }},
    {"model.num_kv_heads",
     [](Case& one, int value) {
       constexpr int kOptions[] = {8, 1, 16, 128, 5};
       model(one).num_kv_heads = pick(kOptions, value);
     }},
    {"model.is_mm_prefix_lm", [](Case& one, int) { model(one).is_mm_prefix_lm = true; }},
    {"model.rswa_window", [](Case& one, int value) { model(one).rswa_window = value % 2 * 128; }},
    {"model.is_diffusion", [](Case& one, int) { model(one).is_diffusion = true; }},
    {"model.attn_type",
     [](Case& one, int value) {
       model(one).attn_type = static_cast<AttentionType>(3 - value % kNumAttentionTypes);
     }},
    {"hf.qk_nope_head_dim", set_attribute<&HfFacts::qk_nope_head_dim>},
    {"hf.qk_rope_head_dim", set_attribute<&HfFacts::qk_rope_head_dim>},
    {"hf.v_head_dim", set_or_remove_attribute<&HfFacts::v_head_dim>},
    {"hf.kv_lora_rank", set_attribute<&HfFacts::kv_lora_rank>},
    {"hf.index_topk", set_or_remove_attribute<&HfFacts::index_topk>},
    {"hf.attn_logit_softcapping",
     [](Case& one, int value) { model(one).hf.attn_logit_softcapping = value % 2 * 30.0; }},
    {"cpu_arch",
     [](Case& one, int value) {
       const char* options[] = {"X86", "ARM"};
       one.facts.environment.cpu_arch = pick(options, value);
     }},
    {"cpu_amx_tile", flip<&Environment::cpu_amx_tile>},
    {"cpu_avx512", flip<&Environment::cpu_avx512>},
    {"aiter_found", flip<&Environment::aiter_found>},
    {"aiter_enabled", flip<&Environment::aiter_enabled>},
    {"aiter_mla", flip<&Environment::aiter_mla>},
    {"aiter_mha", flip<&Environment::aiter_mha>},
    {"aiter_causal_arg", flip<&Environment::aiter_causal_arg>},
    {"aiter_shuffle_kv_cache", flip<&Environment::aiter_shuffle_kv_cache>},
    {"kv_connector_instance", flip<&Environment::kv_connector_instance>},
};

struct CommonCase {
  std::string_view name;
  Platform platform;
  std::optional<DeviceCapability> capability;
  std::string_view gcn_arch;
  int head_size;
  bool use_mla;
  bool use_sparse;
  bool use_mm_prefix;
};

constexpr CommonCase kCommonCases[] = {
    {"Hopper", Platform::kCuda, {{9, 0}}, "", 128, false, false, false},
    {"Blackwell", Platform::kCuda, {{10, 0}}, "", 128, false, false, false},
    {"Ampere", Platform::kCuda, {{8, 0}}, "", 128, false, false, false},
    {"images on Hopper", Platform::kCuda, {{9, 0}}, "", 256, false, false, true},
    {"images on Blackwell", Platform::kCuda, {{10, 0}}, "", 256, false, false, true},
    {"latent on Hopper", Platform::kCuda, {{9, 0}}, "", 576, true, false, false},
    {"latent on Blackwell", Platform::kCuda, {{10, 0}}, "", 576, true, false, false},
    {"sparse latent on Blackwell", Platform::kCuda, {{10, 0}}, "", 576, true, true, false},
    {"sparse latent on a workstation", Platform::kCuda, {{12, 0}}, "", 576, true, true, false},
    {"CDNA", Platform::kRocm, {}, "gfx942", 128, false, false, false},
    {"RDNA", Platform::kRocm, {}, "gfx1100", 128, false, false, false},
    {"latent on CDNA", Platform::kRocm, {}, "gfx950", 576, true, false, false},
    {"XPU", Platform::kXpu, {}, "", 128, false, false, false},
    {"latent on XPU", Platform::kXpu, {}, "", 576, true, false, false},
    {"CPU", Platform::kCpu, {}, "", 128, false, false, false},
    {"latent on CPU", Platform::kCpu, {}, "", 576, true, false, false},
};

Case common_case(const CommonCase& common) {
  Case one;
  one.facts.platform = common.platform;
  one.facts.capability = common.capability;
  one.facts.environment.gcn_arch = common.gcn_arch;
  one.facts.environment.aiter_found = one.facts.environment.aiter_enabled = true;
  if (common.use_sparse) model(one);
  Config& config = one.request.config;
  config.head_size = common.head_size;
  config.kv_cache_dtype = CacheDType::kAuto;
  config.use_mla = common.use_mla;
  config.use_sparse = common.use_sparse;
  config.use_mm_prefix = common.use_mm_prefix;
  return one;
}

DeviceCapability gcn_capability(std::string_view arch) {
  constexpr std::pair<std::string_view, DeviceCapability> kKnown[] = {
      {"gfx90a", {9, 0}},   {"gfx942", {9, 4}},   {"gfx950", {9, 5}},   {"gfx1100", {11, 0}},
      {"gfx1151", {11, 5}}, {"gfx1200", {12, 0}}, {"gfx1201", {12, 0}}, {"gfx1250", {12, 5}}};
  for (const auto& [name, capability] : kKnown) {
    if (name == arch) return capability;
  }
  return {};
}

// What a platform has not is not drawn, nor a ROCm run with the cache of a backend that cannot be
// imported: whether others are asked for its layouts then is not known.
void settle(Case& one) {
  const Platform platform = one.facts.platform;
  if (platform != Platform::kCuda) one.facts.capability.reset();
  if (platform == Platform::kRocm) {
    one.facts.capability = gcn_capability(one.facts.environment.gcn_arch);
    for (const char* member : {"TURBOQUANT", "ULTRAQUANT"}) {
      one.facts.environment.import_errors.erase(member);
      one.overrides.erase(member);
    }
  }
  if (platform == Platform::kCpu || platform == Platform::kXpu) {
    one.facts.environment.import_errors.clear();
    one.overrides.clear();
  }
}

const Field& field_of(const Departure& departure) {
  return kFields[static_cast<std::size_t>(departure.field)];
}
const CommonCase& common_of(const CaseDraw& draw) {
  return kCommonCases[static_cast<std::size_t>(draw.common)];
}

}  // namespace

int num_common_cases() { return static_cast<int>(std::size(kCommonCases)); }
int num_fields() { return static_cast<int>(std::size(kFields)); }
int num_request_fields() {
  const auto* const first =
      std::find_if(std::begin(kFields), std::end(kFields),
                   [](const Field& field) { return field.name == "capability"; });
  return static_cast<int>(first - std::begin(kFields));
}

SelectionCase make_case(const CaseDraw& draw) {
  Case one = common_case(common_of(draw));
  for (const Departure& departure : draw.departures) {
    field_of(departure).set(one, departure.value);
  }
  settle(one);
  return one;
}

std::string to_string(const CaseDraw& draw) {
  std::string text(common_of(draw).name);
  for (const Departure& departure : draw.departures) {
    text += fmt::format(", {} {}", field_of(departure).name, departure.value);
  }
  const Case one = make_case(draw);
  return fmt::format("{}; {} asked for {}", text, repr(one.request.config),
                     one.request.backend.value_or("nothing"));
}

void showValue(const CaseDraw& draw, std::ostream& out) { out << to_string(draw); }

BackendRegistry registry_of(const SelectionCase& one) {
  BackendRegistry registry(RegistryKind::kAttention);
  for (const auto& [member, path] : one.overrides) registry.override_path(member, path);
  return registry;
}

std::vector<SelectionRequest> requests_on_the_way(const CaseDraw& draw) {
  Case one = common_case(common_of(draw));
  std::vector<SelectionRequest> requests = {one.request};
  for (const Departure& departure : draw.departures) {
    field_of(departure).set(one, departure.value);
    requests.push_back(one.request);
  }
  return requests;
}

std::vector<std::string> described_members() {
  std::vector<std::string> names;
  for (const BackendRegistry::Member& member : members()) {
    if (find_backend_row(member.name) != nullptr) names.push_back(member.name);
  }
  return names;
}

}  // namespace attn::property_tests
