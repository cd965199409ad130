// What answers a layer: vLLM's AttentionImpl, with its names; defaults are those of its base class.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn/kv_cache.h"
#include "attn/metadata_builder.h"
#include "attn/selector_config.h"
#include "attn/view.h"

namespace attn {

class AttentionBackend;

// What a layer hands its implementation when it is made.
struct ImplArguments {
  int num_heads = 1;
  int head_size = 0;
  double scale = 1.0;
  int num_kv_heads = 1;
  std::vector<float> alibi_slopes;  // [num_heads] or empty
  std::optional<int> sliding_window;
  CacheDType kv_cache_dtype = CacheDType::kAuto;
  double logits_soft_cap = 0.0;  // 0 = none
  AttentionType attn_type = AttentionType::kDecoder;
  std::optional<std::string> kv_sharing_target_layer_name;
  std::vector<float> sinks;  // [num_heads] or empty
  bool mm_prefix_clamp_sliding_window = false;
};

// What an implementation tells about itself. The first five: none = it keeps no such attribute.
struct ImplTraits {
  std::optional<int> num_heads;
  std::optional<int> num_kv_heads;
  std::optional<int> head_size;
  std::optional<double> scale;
  std::optional<CacheDType> kv_cache_dtype;
  bool supports_pcp = false;
  bool supports_dcp = false;
  bool supports_quant_query_input = false;
  bool can_return_lse_for_decode = false;
  bool need_to_return_lse_for_decode = false;
  bool supports_mtp_with_cp_non_trivial_interleave_size = false;
  bool lse_base_on_e = true;
};

// One call of forward: the rows of a step, and the cache that they were already written to. Views
// as in AttentionOp.
struct ForwardArguments {
  TensorView query;               // [>= num_tokens, num_heads, head_size]
  TensorView key, value;          // of this step; absent when they are in the cache only
  KvCacheView kv_cache;           // without block_table, which is the batch's
  MutableTensorView output;       // [num_tokens, num_heads, head_size_v]
  MutableTensorView lse;          // in the form of the backend that answers, optional
  TensorView output_scale;        // f32 [1], optional
  TensorView output_block_scale;  // optional
};

// Rows to write into a cache in place.
struct CacheUpdate {
  TensorView key, value;                           // [>= n, num_kv_heads, head_size]
  std::vector<std::int64_t> slot_mapping;          // [n]; -1 = do not write
  KvCacheView cache;                               // without block_table
  MutableTensorView key_cache, value_cache;        // the memory that `cache` views
  MutableTensorView k_scale_cache, v_scale_cache;  // with a scale per token and head
};

// Operations that write the cache together with something before it.
enum class FusedUpdate : std::uint8_t { kQkNormRope, kQkNormMrope, kRope };

// Thread-safe after construction, for different outputs. Its backend must outlive it. What it does
// not support throws VllmError with the names of backend and method.
class AttentionImpl {
 public:
  virtual ~AttentionImpl() = default;

  virtual const AttentionBackend& backend() const = 0;
  virtual ImplTraits traits() const = 0;

  // Throws Error when `metadata` was built for another backend; both are named.
  virtual void forward(const AttentionMetadata& metadata,
                       const ForwardArguments& arguments) const = 0;

  // Where the backend's forward does not write the cache: vLLM's do_kv_cache_update. Unsupported
  // (AttributeError) by default.
  virtual void do_kv_cache_update(const CacheUpdate& update) const;

  virtual bool fused_output_quant_supported() const { return false; }
  virtual bool fused_update_supported(FusedUpdate) const { return false; }
  // Unsupported (NotImplementedError) by default.
  virtual void do_fused_update(FusedUpdate which, const CacheUpdate& update) const;

  // Itself, or the children of a composite in order.
  virtual std::vector<const AttentionImpl*> variants() const { return {this}; }
  virtual void process_weights_after_loading(DType /*activations*/) {}
  virtual void prepare_for_batch(const AttentionMetadata&) {}
};

// The first of an implementation's variants that is of this backend, looking into the variants of
// variants; null = none.
const AttentionImpl* find_attention_impl_variant(const AttentionImpl& impl,
                                                 const AttentionBackend& backend);

}  // namespace attn
