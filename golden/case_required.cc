// What an operation must have: the conditional part of the schema.
#include <fmt/core.h>

#include <span>

#include "attn/error.h"
#include "golden/case_object.h"

namespace attn::golden {
namespace {

using Names = std::vector<std::string_view>;

struct Required {
  Names axes, attrs, inputs, outputs;
};

Required required_by(OpKind op) {
  const Names heads = {"num_reqs",     "num_tokens", "num_heads",
                       "num_kv_heads", "head_size",  "head_size_v"};
  switch (op) {
    case OpKind::kAttention:
      return {
          heads, {"kv_layout", "scale", "causal"}, {"query", "query_start_loc", "seq_lens"}, {}};
    case OpKind::kDifferential:
      return {heads,
              {"kv_layout", "scale", "causal", "diff_lambda", "diff_lambda_init"},
              {"query", "query_start_loc", "seq_lens"},
              {}};
    case OpKind::kMla:
      return {{},
              {"block_size", "scale", "causal", "mla_form", "kv_lora_rank", "qk_rope_head_dim"},
              {"query", "kv_cache", "block_table", "query_start_loc", "seq_lens"},
              {}};
    case OpKind::kMlaSparse:
      return {{},
              {"block_size", "scale", "mla_form", "kv_lora_rank", "qk_rope_head_dim",
               "topk_index_space"},
              {"query", "kv_cache", "block_table", "query_start_loc", "seq_lens", "topk_indices"},
              {}};
    case OpKind::kIndexer:
      return {{}, {}, {"query", "key", "weights", "k_start", "k_end"}, {}};
    case OpKind::kMergeStates:
      return {{}, {"lse_base"}, {"out_parts", "lse_parts"}, {}};
    case OpKind::kCacheWrite:
      return {{},
              {"block_size", "kv_cache_dtype"},
              {"key", "value", "slot_mapping", "key_cache", "value_cache"},
              {}};
    case OpKind::kMlaCacheWrite:
      return {{},
              {"block_size", "kv_cache_dtype", "kv_lora_rank", "qk_rope_head_dim"},
              {"kv_c", "k_pe", "slot_mapping", "kv_cache"},
              {"kv_cache_after"}};
  }
  return {};
}

// In addition, of attention.
Required required_by(KvLayout layout) {
  switch (layout) {
    case KvLayout::kVarlen:
      return {{}, {}, {"key", "value", "kv_start_loc"}, {}};
    case KvLayout::kPaged:
      return {
          {}, {"block_size", "kv_cache_layout"}, {"key_cache", "value_cache", "block_table"}, {}};
    case KvLayout::kPacked:
      return {{}, {"block_size", "kv_cache_layout"}, {"kv_cache", "block_table"}, {}};
  }
  return {};
}

void expect_all(const JsonNode& node, const Required& required) {
  const auto expect = [&](std::string_view table, const Names& names) {
    const JsonNode in = node.at(table);
    for (const std::string_view key : names) in.at(key);
  };
  expect("axes", required.axes);
  expect("attrs", required.attrs);
  expect("inputs", required.inputs);
  expect("outputs", required.outputs);
}

// R-SWA stands alone.
void expect_rswa_alone(const CaseObject& object) {
  const auto excluded = [](std::string_view what) {
    throw Error(fmt::format("{} is excluded by case.attrs.rswa_window", what));
  };
  if (!object.attrs.causal.value_or(true)) excluded("case.attrs.causal false");
  for (const std::string_view key :
       {"window_left", "window_right", "sink_token_length", "attention_chunk_size"}) {
    if (object.attrs.has(key)) excluded(fmt::format("case.attrs.{}", key));
  }
  for (const std::string key : {"mm_prefix_ranges", "causal_per_req"}) {
    if (object.inputs.contains(key)) excluded(fmt::format("case.inputs.{}", key));
  }
}

}  // namespace

void expect_required(const JsonNode& node, const CaseObject& object) {
  const CaseAttributes& attrs = object.attrs;
  expect_all(node, required_by(object.op));
  if (object.op == OpKind::kAttention && attrs.kv_layout) {
    expect_all(node, required_by(*attrs.kv_layout));
  }
  if (object.op == OpKind::kMlaCacheWrite && attrs.kv_cache_dtype != CacheDType::kAuto &&
      attrs.kv_cache_dtype != CacheDType::kFp8E4M3 &&
      attrs.kv_cache_dtype != CacheDType::kFp8DsMla) {
    node.at("attrs").at("kv_cache_dtype").fail("one of auto, fp8_e4m3, fp8_ds_mla");
  }
  if (attrs.has("rswa_window")) {
    node.at("inputs").at("rswa_prefix_lens");
    expect_rswa_alone(object);
  }
  if (attrs.has("exec") && object.op != OpKind::kAttention && object.op != OpKind::kMla) {
    throw Error(fmt::format("case.attrs.exec does not belong to operation {}", name(object.op)));
  }
}

}  // namespace attn::golden
