// Replays capabilities.json: every predicate of every described backend in a base state, and what
// differs in others.
#include <fmt/core.h>

#include <array>

#include "attn/error.h"
#include "core/contains.h"
#include "selector/environment_json.h"
#include "selector/json_values.h"
#include "selector/table_kinds.h"
#include "selector/vllm_backends.h"

namespace attn {
namespace {

using nlohmann::json;

// The arguments that the table asks each predicate with.
constexpr std::array kHeadSizes = {8,   16,  24,  32,  40,  48,  64,  72,  80,
                                   96,  100, 112, 128, 160, 192, 224, 256, 264,
                                   288, 320, 384, 512, 520, 576, 640, 1024};
constexpr std::array kBlockSizes = {1,   8,   16,  24,  32,  48,  64,  80,  96,
                                    100, 112, 128, 192, 256, 384, 512, 1024};
constexpr std::array kPreferredFor = {16, 64, 128};

json dtype_names(const std::vector<DType>& dtypes) {
  json names = json::array();
  for (const DType dtype : dtypes) names.push_back(model_dtype_name(dtype));
  return names;
}

json accepted_heads(const DescribedBackend& b) {
  json accepted = json::array();
  for (const int size : kHeadSizes) {
    if (b.heads.allow(size)) accepted.push_back(size);
  }
  return accepted;
}

json accepted_dtypes(const DescribedBackend& b) {
  json accepted = json::array();
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    if (contains(b.dtypes, dtype)) {
      accepted.push_back(model_dtype_name(dtype));
    }
  }
  return accepted;
}

json accepted_kv(const DescribedBackend& b) {
  json accepted = json::array();
  if (b.kv.accepted.contains(std::nullopt)) accepted.push_back(nullptr);
  for (int index = 0; index < kNumCacheDTypes; ++index) {
    const auto dtype = static_cast<CacheDType>(index);
    if (b.kv.accepted.contains(dtype)) accepted.push_back(name(dtype));
  }
  return accepted;
}

json accepted_blocks(const DescribedBackend& b) {
  json accepted = json::array();
  if (b.blocks.support(std::nullopt)) accepted.push_back(nullptr);
  for (const int size : kBlockSizes) {
    if (b.blocks.support(size)) accepted.push_back(size);
  }
  return accepted;
}

json accepted_types(const DescribedBackend& b) {
  json accepted = json::array();
  for (int index = 0; index < kNumAttentionTypes; ++index) {
    const auto type = static_cast<AttentionType>(index);
    if (contains(b.attn_types, type)) {
      accepted.push_back(name(type));
    }
  }
  return accepted;
}

json lists_of(const DescribedBackend& b, const std::string& path) {
  json preferred = json::array();
  for (const int size : kPreferredFor) preferred.push_back({size, b.blocks.preferred(size)});
  json declared_kv = json::array();
  for (const CacheDType dtype : b.kv.declared) declared_kv.push_back(name(dtype));
  const std::size_t dot = path.rfind('.');
  return {{"get_name", b.name},
          {"full_cls_name", {path.substr(0, dot), path.substr(dot + 1)}},
          {"supported_dtypes", dtype_names(b.declared_dtypes.value_or(b.dtypes))},
          {"supported_kv_cache_dtypes", declared_kv},
          {"get_supported_kernel_block_sizes", to_json_value(b.blocks.sizes)},
          {"get_supported_head_sizes", b.heads.declared.value_or(b.heads.only)},
          {"supports_head_size", accepted_heads(b)},
          {"supports_dtype", accepted_dtypes(b)},
          {"supports_kv_cache_dtype", accepted_kv(b)},
          {"supports_block_size", accepted_blocks(b)},
          {"get_preferred_block_size", preferred},
          {"supports_attn_type", accepted_types(b)},
          {"supported_kv_cache_layouts", b.layouts ? to_json_value(*b.layouts) : json(nullptr)}};
}

json answer_or_raise(bool answer, const std::string& raises) {
  return raises.empty() ? json(answer) : json{{"raises", raises}};
}

void add_switches(const DescribedBackend& b, json& all) {
  all["forward_includes_kv_cache_update"] = b.update_in_forward;
  all["supports_kv_cache_update_bypass"] = b.update_bypass;
  all["is_mla"] = b.mla;
  all["is_sparse"] = b.sparse;
  all["is_ssm"] = b.ssm;
  all["supports_sink"] = b.sink;
  all["supports_alibi_sqrt"] = b.alibi_sqrt;
  all["supports_mm_prefix"] = b.mm_prefix;
  all["supports_per_head_quant_scales"] = b.per_head_quant_scales;
  all["supports_sliding_window"] = b.sliding_window;
  all["supports_rswa"] = b.rswa;
  all["supports_non_causal"] = answer_or_raise(b.non_causal, b.non_causal_raises);
  all["supports_batch_invariance"] = b.batch_invariance;
  all["supports_kv_connector"] = b.kv_connector;
  all["supports_device_cpu_query_lens_mismatch"] = b.query_lens_mismatch;
  all["supports_pcp"] = b.pcp;
  all["supports_dcp"] = b.dcp;
  all["supports_non_causal_dcp"] = b.non_causal_dcp;
  all["supports_compute_capability"] = answer_or_raise(b.capability, b.capability_raises);
}

json everything(const DescribedBackend& b, const std::string& path) {
  json all = lists_of(b, path);
  add_switches(b, all);
  if (b.has_impl) {
    all["impl"] = {{"can_return_lse_for_decode", b.decode_lse},
                   {"lse_base_on_e", b.lse_base_e},
                   {"supports_pcp", b.pcp},
                   {"supports_dcp", b.dcp}};
  }
  all["builder"] = {{"_cudagraph_support", name(b.graph)},
                    {"reorder_batch_threshold", or_null(b.reorder_batch_threshold)},
                    {"supports_update_block_table", b.update_block_table},
                    {"requires_block_table_width", false}};
  return all;
}

// A backend of one platform, as the table names it.
struct Subject {
  std::string path;
  DescribedBackend (*describe)(const SelectorFacts&) = nullptr;
};

Subject subject_of(const JsonNode& node, bool mamba, const std::string& backend) {
  if (backend == "XPU:FLASH_ATTN_MLA") {
    return {std::string(kXpuFlashAttnMlaPath), xpu_flash_attn_mla};
  }
  const BackendRegistry registry(mamba ? RegistryKind::kMamba : RegistryKind::kAttention);
  if (!mamba) {
    if (const BackendRow* row = find_backend_row(backend)) {
      return {registry.path(backend), row->describe};
    }
  }
  for (const BackendRow& row : mamba_backends()) {
    if (mamba && row.member == backend) return {registry.path(backend), row.describe};
  }
  node.fail("a described backend as key");
}

json answer_at(const Subject& subject, const SelectorFacts& facts) {
  return everything(subject.describe(facts), subject.path);
}

// What differs from `base` at every point of `where`; of points that disagree, the first that does
// not fit `expected`.
json differs_at(const Subject& subject, Platform platform, const EnvironmentReader& reader,
                const JsonNode& where, const json& base, const json& expected) {
  json last = json::object();
  for (const JsonNode& region : where.elements()) {
    region.expect_only({"envs", "capabilities"});
    for (const JsonNode& env : region.at("envs").elements()) {
      SelectorFacts facts{platform, std::nullopt, reader.read(env)};
      for (const JsonNode& capability : region.at("capabilities").elements()) {
        facts.capability = capability_from(capability);
        last = json::object();
        const json here = answer_at(subject, facts);
        for (const auto& [key, value] : here.items()) {
          if (value != base[key]) last[key] = value;
        }
        if (last != expected) return last;
      }
    }
  }
  return last;
}

void answer_backend(const JsonNode& node, const json& raw, const std::string& platform,
                    const std::string& backend, const EnvironmentReader& reader,
                    const RowSink& sink) {
  node.expect_only({"base_capability", "base_env", "base", "differences"});
  const bool mamba = platform == "mamba";
  const Subject subject = subject_of(node, mamba, backend);
  SelectorFacts facts;
  if (!mamba) {
    facts.platform = *platform_from_name(platform);
    facts.capability = capability_from(node.at("base_capability"));
    facts.environment = reader.read(node.at("base_env"));
  }
  const json base = answer_at(subject, facts);
  json answer = {{"base", base}};
  if (node.has("differences")) {
    json& differences = answer["differences"] = json::array();
    for (const JsonNode& one : node.at("differences").elements()) {
      one.expect_only({"where", "differs"});
      const json& there = raw["differences"][differences.size()];
      differences.push_back(
          {{"where", there["where"]},
           {"differs", differs_at(subject, facts.platform, reader, one.at("where"), base,
                                  there.value("differs", json::object()))}});
    }
  }
  sink({fmt::format("/capabilities/{}/{}", platform, backend),
        members_of(raw, {"base", "differences"}), std::move(answer)});
}

}  // namespace

void answer_capabilities(const JsonNode& root, const JsonNode& table, const json& raw,
                         const RowSink& sink) {
  const EnvironmentReader reader(root);
  for (const auto& [platform, backends] : table.members()) {
    if (platform != "mamba" && !platform_from_name(platform)) {
      backends.fail("a platform or mamba as key");
    }
    for (const auto& [backend, node] : backends.members()) {
      answer_backend(node, raw[platform][backend], platform, backend, reader, sink);
    }
  }
}

}  // namespace attn
