#include "selector/environment_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "attn/error.h"
#include "core/strict_json.h"
#include "selector/json_values.h"

namespace attn {
namespace {

using nlohmann::json;
using Environment = SelectorEnvironment;

template <bool Environment::*field>
void read_bool(const JsonNode& value, Environment& e) {
  e.*field = value.boolean();
}
template <auto field>
json write_plain(const Environment& e) {
  return e.*field;
}
template <bool Environment::*field>
constexpr Fact switch_fact(std::string_view name, std::string_view platforms,
                           std::string_view meaning) {
  return {name, "bool", platforms, meaning, read_bool<field>, write_plain<field>};
}

template <int Environment::*field>
void read_size(const JsonNode& value, Environment& e) {
  e.*field = int_from(value);
  if (e.*field < 1) value.fail("an integer >= 1");
}
template <std::string Environment::*field>
void read_string(const JsonNode& value, Environment& e) {
  e.*field = value.string();
}

void read_fa_built(const JsonNode& value, Environment& e) {
  e.fa2_built = e.fa3_built = e.fa4_built = false;
  for (const JsonNode& element : value.elements()) {
    const int version = int_from(element);
    if (version < 2 || version > 4) element.fail("2, 3 or 4");
    (version == 2 ? e.fa2_built : version == 3 ? e.fa3_built : e.fa4_built) = true;
  }
}
json write_fa_built(const Environment& e) {
  json built = json::array();
  if (e.fa2_built) built.push_back(2);
  if (e.fa3_built) built.push_back(3);
  if (e.fa4_built) built.push_back(4);
  return built;
}

void read_cute_error(const JsonNode& value, Environment& e) {
  e.fa4_cute_error = optional_string_from(value);
}
json write_cute_error(const Environment& e) { return or_null(e.fa4_cute_error); }

constexpr std::array<std::string_view, 3> kB12xStates = {"supported", "unsupported", "missing"};
void read_b12x(const JsonNode& value, Environment& e) {
  e.b12x = static_cast<B12xState>(value.choice(kB12xStates));
}
json write_b12x(const Environment& e) { return kB12xStates[static_cast<std::size_t>(e.b12x)]; }

void read_import_errors(const JsonNode& value, Environment& e) {
  e.import_errors.clear();
  for (const auto& [name, error] : value.members()) e.import_errors[name] = error.string();
}
json write_import_errors(const Environment& e) {
  return e.import_errors.empty() ? json::object() : json(e.import_errors);
}

void read_flash_attn_version(const JsonNode& value, Environment& e) {
  e.flash_attn_version = optional_int_from(value);
  const int version = e.flash_attn_version.value_or(2);
  if (version < 2 || version > 4) value.fail("null, 2, 3 or 4");
}
json write_flash_attn_version(const Environment& e) { return or_null(e.flash_attn_version); }

void read_use_trtllm(const JsonNode& value, Environment& e) {
  e.use_trtllm_attention = value.is_null() ? std::nullopt : std::optional<bool>(value.boolean());
}
json write_use_trtllm(const Environment& e) { return or_null(e.use_trtllm_attention); }

void read_cache_dtype(const JsonNode& value, Environment& e) {
  const std::optional<CacheDType> dtype = cache_dtype_from(value);
  if (!dtype) value.fail("a cache dtype");
  e.cache_dtype = *dtype;
}
json write_cache_dtype(const Environment& e) { return name(e.cache_dtype); }

constexpr Fact kFacts[] = {
    {"fa_built", "list of integers", "cuda", "versions of FlashAttention that are compiled in",
     read_fa_built, write_fa_built},
    {"fa4_cute_error", "string or null", "cuda",
     "repr of what importing FlashAttention 4's entry point raises", read_cute_error,
     write_cute_error},
    switch_fact<&Environment::nvidia_artifactory>(
        "nvidia_artifactory", "cuda", "trtllm-gen kernels are installed or can be downloaded"),
    switch_fact<&Environment::flashinfer>("flashinfer", "cuda", "FlashInfer can be used"),
    switch_fact<&Environment::flashinfer_sparse_mla_sm120>(
        "flashinfer_sparse_mla_sm120", "cuda", "FlashInfer offers sparse MLA for SM120"),
    switch_fact<&Environment::flashinfer_sm90_nope_mla>(
        "flashinfer_sm90_nope_mla", "cuda", "FlashInfer offers MLA without a rotary part for SM90"),
    switch_fact<&Environment::flashmla_c>("flashmla_c", "cuda",
                                          "FlashMLA's first extension module imports"),
    switch_fact<&Environment::flashmla_extension_c>("flashmla_extension_c", "cuda",
                                                    "FlashMLA's second extension module imports"),
    switch_fact<&Environment::flashmla_mega_attn_ops>(
        "flashmla_mega_attn_ops", "cuda", "FlashMLA's mega-attention operators are registered"),
    switch_fact<&Environment::flashmla_mega_permute_ops>(
        "flashmla_mega_permute_ops", "cuda",
        "FlashMLA's mega-attention operators that permute are registered"),
    switch_fact<&Environment::tokenspeed_mla>("tokenspeed_mla", "cuda",
                                              "the package tokenspeed_mla imports"),
    {"b12x", "string", "cuda",
     "the package b12x: supported, unsupported (refuses the device), missing", read_b12x,
     write_b12x},
    {"import_errors", "object of strings", "cuda,rocm",
     "backend to \"ExcType: message\" that asking for its class raises", read_import_errors,
     write_import_errors},
    switch_fact<&Environment::batch_invariant>("batch_invariant", "cuda,rocm,xpu,cpu",
                                               "VLLM_BATCH_INVARIANT"),
    {"flash_attn_version", "integer or null", "cuda", "version of FlashAttention that is asked for",
     read_flash_attn_version, write_flash_attn_version},
    {"use_trtllm_attention", "bool or null", "cuda", "whether trtllm-gen kernels are asked for",
     read_use_trtllm, write_use_trtllm},
    {"cache_dtype", "string", "cuda,rocm", "dtype of the run's KV cache; a layer's may differ",
     read_cache_dtype, write_cache_dtype},
    {"dcp_size", "integer", "cuda", "ranks of decode context parallelism",
     read_size<&Environment::dcp_size>, write_plain<&Environment::dcp_size>},
    {"pcp_size", "integer", "cuda", "ranks of prefill context parallelism",
     read_size<&Environment::pcp_size>, write_plain<&Environment::pcp_size>},
    {"cpu_arch", "string", "cpu", "a name of vLLM's CpuArchEnum",
     read_string<&Environment::cpu_arch>, write_plain<&Environment::cpu_arch>},
    switch_fact<&Environment::cpu_amx_tile>("cpu_amx_tile", "cpu", "the CPU has AMX tiles"),
    switch_fact<&Environment::cpu_avx512>("cpu_avx512", "cpu", "the CPU has AVX-512"),
    {"gcn_arch", "string", "rocm", "the device's architecture; its capability follows",
     read_string<&Environment::gcn_arch>, write_plain<&Environment::gcn_arch>},
    switch_fact<&Environment::aiter_found>("aiter_found", "rocm", "the library AITER is installed"),
    switch_fact<&Environment::aiter_enabled>("aiter_enabled", "rocm", "AITER's master switch"),
    switch_fact<&Environment::aiter_mla>("aiter_mla", "rocm", "AITER's switch for MLA"),
    switch_fact<&Environment::aiter_mha>("aiter_mha", "rocm",
                                         "AITER's switch for attention outside MLA"),
    switch_fact<&Environment::aiter_causal_arg>("aiter_causal_arg", "rocm",
                                                "AITER's MLA decode has a causal argument"),
    switch_fact<&Environment::aiter_shuffle_kv_cache>("aiter_shuffle_kv_cache", "rocm",
                                                      "AITER's shuffled layout of the KV cache"),
    switch_fact<&Environment::kv_connector_instance>("kv_connector_instance", "rocm",
                                                     "the run has a KV connector"),
};

HfFacts hf_from(const JsonNode& node) {
  node.expect_only({"qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank",
                    "index_topk", "attn_logit_softcapping"});
  const auto attribute = [&](std::string_view key) {
    return node.has(key) ? optional_int_from(node.at(key)) : std::nullopt;
  };
  HfFacts hf;
  hf.qk_nope_head_dim = attribute("qk_nope_head_dim");
  hf.qk_rope_head_dim = attribute("qk_rope_head_dim");
  hf.v_head_dim = attribute("v_head_dim");
  hf.kv_lora_rank = attribute("kv_lora_rank");
  hf.index_topk = attribute("index_topk");
  if (node.has("attn_logit_softcapping") && !node.at("attn_logit_softcapping").is_null()) {
    hf.attn_logit_softcapping = node.at("attn_logit_softcapping").number();
  }
  return hf;
}

ModelFacts model_from(const JsonNode& node, ModelFacts model) {
  node.expect_only({"head_size", "num_heads", "num_kv_heads", "is_mm_prefix_lm", "rswa_window",
                    "is_diffusion", "attn_type", "hf"});
  if (node.has("head_size")) model.head_size = int_from(node.at("head_size"));
  if (node.has("num_heads")) model.num_heads = int_from(node.at("num_heads"));
  if (node.has("num_kv_heads")) model.num_kv_heads = int_from(node.at("num_kv_heads"));
  if (node.has("is_mm_prefix_lm")) model.is_mm_prefix_lm = node.at("is_mm_prefix_lm").boolean();
  if (node.has("rswa_window")) model.rswa_window = optional_int_from(node.at("rswa_window"));
  if (node.has("is_diffusion")) model.is_diffusion = node.at("is_diffusion").boolean();
  if (node.has("attn_type")) model.attn_type = attention_type_from(node.at("attn_type"));
  if (node.has("hf")) model.hf = hf_from(node.at("hf"));
  return model;
}

}  // namespace

std::span<const Fact> facts() { return kFacts; }

EnvironmentReader::EnvironmentReader(const JsonNode& header) {
  if (header.has("model_defaults")) {
    model_defaults_ = model_from(header.at("model_defaults"), ModelFacts{});
  }
  if (header.has("environment")) apply(header.at("environment"), defaults_);
}

SelectorEnvironment EnvironmentReader::read(const JsonNode& differences) const {
  SelectorEnvironment environment = defaults_;
  apply(differences, environment);
  return environment;
}

void EnvironmentReader::apply(const JsonNode& differences, SelectorEnvironment& environment) const {
  for (const auto& [name, value] : differences.members()) {
    if (name == "model") {
      environment.model =
          value.is_null() ? std::nullopt : std::optional(model_from(value, model_defaults_));
      continue;
    }
    const auto fact = std::find_if(std::begin(kFacts), std::end(kFacts),
                                   [&key = name](const Fact& one) { return one.name == key; });
    if (fact == std::end(kFacts)) {
      throw Error(fmt::format("{} has the unknown fact {}", differences.path(), in_quotes(name)));
    }
    fact->read(value, environment);
  }
}

}  // namespace attn
