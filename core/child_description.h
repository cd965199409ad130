// A backend described in JSON: what it declares in selection, and what its builder and
// implementation are like.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "attn/attention_impl.h"
#include "attn/described_backend.h"
#include "attn/metadata_builder.h"
#include "attn/vllm_error.h"
#include "core/strict_json.h"

namespace attn {

// The methods of a backend that answer yes or no, by vLLM's names.
struct BackendFlag {
  std::string_view name;  // "supports_sink"
  bool DescribedBackend::*field;
};
std::span<const BackendFlag> backend_flags();

struct BuilderDescription {
  GraphSupport cudagraph_support = GraphSupport::kNever;
  std::optional<int> varlen_bound;
  std::optional<int> reorder_batch_threshold;
  bool requires_block_table_width = false;
  bool supports_update_block_table = false;
  bool supports_draft_decode_metadata_update = false;
  bool supports_non_causal_multi_token_dcp = false;
  bool own_capture = false;   // overrides build_for_cudagraph_capture
  bool own_drafting = false;  // overrides build_for_drafting
  bool has_get_workspace = false;
  bool has_set_workspace = false;
  bool build_returns_none = false;  // of `build` alone
};

struct ImplDescription {
  ImplTraits traits;
  std::optional<VllmError> raises;  // what the constructor raises
  bool not_implemented = false;     // there is no implementation class
  bool has_kv_cache_update = true;
  bool fused_output_quant = false;
  bool fused_qk_norm_rope = false;
  bool fused_qk_norm_mrope = false;
  bool fused_rope = false;
};

struct ChildDescription {
  std::string name;
  std::string module;
  std::string class_name;
  DescribedBackend backend;                                        // without the two bounds
  std::optional<DeviceCapability> min_capability, max_capability;  // inclusive
  BlockSizes kernel_block_sizes_with_spec;
  std::map<std::string, int> spec_changes;  // fields of KvCacheSpec
  BuilderDescription builder;
  ImplDescription impl;
};

// Reads an object with the members of a description and, beside them, `further_keys`. A missing
// member has the value of vLLM's base class. Throws Error, naming the path, for unknown keys and
// values.
ChildDescription child_description_from(const JsonNode& node,
                                        std::span<const std::string_view> further_keys = {});

// On a device; a device without a capability is inside any bounds.
DescribedBackend described_on(const ChildDescription& child,
                              const std::optional<DeviceCapability>& capability);

// customize_spec: the spec with the fields that the backend sets.
KvCacheSpec customized(const ChildDescription& child, KvCacheSpec spec);

GraphSupport graph_support_from(const JsonNode& node);  // "UNIFORM_BATCH"

}  // namespace attn
