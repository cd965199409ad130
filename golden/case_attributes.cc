#include <fmt/core.h>

#include <algorithm>

#include "attn/error.h"
#include "golden/case_object.h"
#include "golden/exec_json.h"

namespace attn::golden {
namespace {

constexpr std::string_view kCacheDTypes[] = {
    "auto",  "fp8_e4m3",  "fp8_e5m2", "fp8_e4m3fnuz", "int8_per_token_head", "fp8_per_token_head",
    "nvfp4", "fp8_ds_mla"};

// The enumerator `index` places after `first`.
template <class Enum>
Enum after(Enum first, std::size_t index) {
  return static_cast<Enum>(static_cast<std::size_t>(first) + index);
}

struct Attribute {
  std::string_view name;
  void (*parse)(CaseAttributes& to, const JsonNode& from);
};

using To = CaseAttributes;
using From = const JsonNode&;

constexpr Attribute kAttributes[] = {
    {"kv_layout",
     [](To& to, From from) {
       to.kv_layout = after(KvLayout::kVarlen, from.choice({"varlen", "paged", "paged_packed"}));
     }},
    {"kv_cache_layout",
     [](To& to, From from) {
       to.heads_first = from.choice({"NHD", "HND"}) == 1;
     }},
    {"block_size", [](To& to, From from) { to.block_size = from.integer(1); }},
    {"kv_cache_dtype",
     [](To& to, From from) {
       to.kv_cache_dtype = after(CacheDType::kAuto, from.choice(kCacheDTypes));
     }},
    {"scale", [](To& to, From from) { to.scale = from.real(); }},
    {"causal", [](To& to, From from) { to.causal = from.boolean(); }},
    {"window_left", [](To& to, From from) { to.window_left = from.integer(0); }},
    {"window_right", [](To& to, From from) { to.window_right = from.integer(0); }},
    {"sink_token_length", [](To& to, From from) { to.sink_token_length = from.integer(0); }},
    {"attention_chunk_size", [](To& to, From from) { to.attention_chunk_size = from.integer(1); }},
    {"attention_chunk_lookback",
     [](To& to, From from) { to.attention_chunk_lookback = from.integer(0); }},
    {"rswa_window", [](To& to, From from) { to.rswa_window = from.integer(1); }},
    {"mm_prefix_clamp", [](To& to, From from) { to.mm_prefix_clamp = from.boolean(); }},
    {"logits_soft_cap", [](To& to, From from) { to.logits_soft_cap = from.real(); }},
    {"alibi_form",
     [](To& to, From from) {
       to.alibi_form =
           after(AlibiForm::kRow, from.choice({"row", "context", "zero", "abs", "sqrt"}));
     }},
    {"lse_includes_sink", [](To& to, From from) { to.lse_includes_sink = from.boolean(); }},
    {"mla_form",
     [](To& to, From from) {
       to.mla_form = after(MlaForm::kAbsorbed, from.choice({"absorbed", "expanded"}));
     }},
    {"kv_lora_rank", [](To& to, From from) { to.kv_lora_rank = from.integer(1); }},
    {"qk_rope_head_dim", [](To& to, From from) { to.qk_rope_head_dim = from.integer(0); }},
    {"qk_nope_head_dim", [](To& to, From from) { to.qk_nope_head_dim = from.integer(1); }},
    {"topk_index_space",
     [](To& to, From from) {
       to.topk_index_space = after(TopkIndexSpace::kRequest, from.choice({"request", "slot"}));
     }},
    {"lse_base",
     [](To& to, From from) {
       to.lse_base_2 = from.choice({"e", "2"}) == 1;
     }},
    {"diff_lambda", [](To& to, From from) { to.diff_lambda = from.real(); }},
    {"diff_lambda_init", [](To& to, From from) { to.diff_lambda_init = from.real(); }},
    {"diff_eps", [](To& to, From from) { to.diff_eps = from.real(); }},
    {"exec", [](To& to, From from) { to.exec = parse_exec(from); }},
};

}  // namespace

std::string_view name(CacheDType type) { return kCacheDTypes[static_cast<int>(type)]; }

bool CaseAttributes::has(std::string_view attribute) const {
  return std::binary_search(given.begin(), given.end(), attribute);
}

CaseAttributes parse_attributes(const JsonNode& node) {
  CaseAttributes attributes;
  for (const auto& [key, value] : node.members()) {
    const auto* known = std::find_if(std::begin(kAttributes), std::end(kAttributes),
                                     [&](const Attribute& a) { return a.name == key; });
    if (known == std::end(kAttributes)) {
      throw Error(fmt::format("{} has the unknown key {}", node.path(), in_quotes(key)));
    }
    known->parse(attributes, value);
    attributes.given.push_back(key);
  }
  return attributes;
}

}  // namespace attn::golden
