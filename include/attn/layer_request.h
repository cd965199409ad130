// get_attn_backend: a layer's arguments and the run's configuration make a selection request.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "attn/selector.h"

namespace attn {

// The kind of a layer's group in the KV cache. Only the first six are ever derived here.
enum class CacheGroupKind : std::uint8_t {
  kFullAttention,
  kSlidingWindow,
  kMlaAttention,
  kSlidingWindowMla,
  kEncoderOnlyAttention,
  kCrossAttention,
  kMamba,
  kChunkedLocalAttention,
  kSinkFullAttention,
  kUnknown,
};
inline constexpr int kNumCacheGroupKinds = 10;

std::string_view name(CacheGroupKind kind);  // "full_attention"
std::optional<CacheGroupKind> cache_group_kind_from_name(std::string_view name);
// `attn_type` is the value of an AttentionType; another text counts as a decoder, as in vLLM.
CacheGroupKind cache_group_kind(bool use_mla, bool has_sliding_window, std::string_view attn_type);

using BackendPerKind = std::map<CacheGroupKind, std::string>;

// What vLLM's run configuration says about selection.
struct RunConfig {
  bool user_specified_block_size = false;
  int block_size = 16;
  bool cache_config = true;  // there is one
  std::string cache_dtype = "auto";
  std::optional<bool> kv_transfer;            // a config, and whether it is a transfer instance
  std::optional<bool> adaptive_verification;  // a speculative config, and whether it enables it
  std::string model_tag = "backbone";
  bool use_non_causal = false;
  bool batch_invariant = false;
  int pcp_size = 1;
  int dcp_size = 1;
  std::optional<int> rswa_window;
  bool model_config = true;  // there is one
  std::optional<std::string> backend;
  BackendPerKind backend_per_kind;
};

// The arguments of get_attn_backend.
struct LayerArguments {
  int head_size = 0;
  DType dtype = DType::kBF16;
  std::optional<std::string> kv_cache_dtype;
  bool use_mla = false;
  bool has_sink = false;
  bool use_sparse = false;
  bool use_mm_prefix = false;
  bool use_per_head_quant_scales = false;
  std::optional<AttentionTypeArgument> attn_type;
  std::optional<int> num_heads;
  bool has_sliding_window = false;
};

// What the run asks for such a layer: the backend of its kind, else the run's; none = automatic.
std::optional<std::string> requested_backend(const AttentionSelectorConfig& config,
                                             const RunConfig& run);

struct LayerRequest {
  SelectionRequest request;
  std::optional<std::string> run_kv_cache_dtype;  // none without a cache config
};

// Throws VllmError AssertionError for a kv_cache_dtype that is no CacheDType.
LayerRequest build_layer_request(const LayerArguments& layer, const RunConfig& run);

// The per-process cache of get_attn_backend. Its key is the request and the run's cache dtype only:
// a selector on another device gets the first one's answer until clear(). Only successes stay.
// Safe to use from many threads.
class SelectionCache {
 public:
  Selection select(const BackendSelector& selector, const LayerRequest& asked);
  void clear();
  std::size_t size() const;

 private:
  using Entry = std::tuple<std::optional<std::string>, AttentionSelectorConfig, std::optional<int>,
                           std::optional<std::string>>;

  mutable std::mutex mutex_;
  std::map<Entry, Selection> entries_;
};

}  // namespace attn
