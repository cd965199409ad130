#include "attn/layer_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "attn/error.h"
#include "selector/python_text.h"

namespace attn {
namespace {

constexpr std::array<std::string_view, kNumCacheGroupKinds> kKindNames = {
    "full_attention",         "sliding_window",  "mla_attention", "sliding_window_mla",
    "encoder_only_attention", "cross_attention", "mamba",         "chunked_local_attention",
    "sink_full_attention",    "unknown"};

CacheDType checked_kv_cache_dtype(const std::string& dtype) {
  if (const std::optional<CacheDType> known = cache_dtype_from_name(dtype)) return *known;
  std::vector<std::string> names;
  for (int index = 0; index < kNumCacheDTypes; ++index) {
    names.emplace_back(name(static_cast<CacheDType>(index)));
  }
  throw VllmError("AssertionError", fmt::format("Invalid kv_cache_dtype: {}. Valid values are: {}",
                                                dtype, python_list(names)));
}

}  // namespace

std::string_view name(CacheGroupKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::optional<CacheGroupKind> cache_group_kind_from_name(std::string_view name) {
  const auto found = std::find(kKindNames.begin(), kKindNames.end(), name);
  if (found == kKindNames.end()) return std::nullopt;
  return static_cast<CacheGroupKind>(found - kKindNames.begin());
}

CacheGroupKind cache_group_kind(bool use_mla, bool has_sliding_window, std::string_view attn_type) {
  using enum CacheGroupKind;
  if (attn_type == name(AttentionType::kEncoderOnly)) return kEncoderOnlyAttention;
  if (attn_type == name(AttentionType::kEncoderDecoder)) return kCrossAttention;
  if (use_mla) return has_sliding_window ? kSlidingWindowMla : kMlaAttention;
  return has_sliding_window ? kSlidingWindow : kFullAttention;
}

std::optional<std::string> requested_backend(const AttentionSelectorConfig& config,
                                             const RunConfig& run) {
  const auto kind =
      cache_group_kind(config.use_mla, config.has_sliding_window, name(config.attn_type.type));
  const auto found = run.backend_per_kind.find(kind);
  return found == run.backend_per_kind.end() ? run.backend : std::optional(found->second);
}

LayerRequest build_layer_request(const LayerArguments& layer, const RunConfig& run) {
  LayerRequest asked;
  AttentionSelectorConfig& config = asked.request.config;
  if (layer.kv_cache_dtype) config.kv_cache_dtype = checked_kv_cache_dtype(*layer.kv_cache_dtype);
  config.head_size = layer.head_size;
  config.dtype = layer.dtype;
  if (run.cache_config && run.user_specified_block_size) config.block_size = run.block_size;
  config.use_mla = layer.use_mla;
  config.has_sink = layer.has_sink;
  config.use_sparse = layer.use_sparse;
  config.use_mm_prefix = layer.use_mm_prefix;
  config.use_per_head_quant_scales = layer.use_per_head_quant_scales;
  config.attn_type = layer.attn_type.value_or(AttentionTypeArgument{});
  config.has_sliding_window = layer.has_sliding_window;
  config.use_non_causal = run.use_non_causal;
  config.use_batch_invariant = run.batch_invariant;
  config.use_kv_connector = run.kv_transfer.value_or(false);
  config.use_pcp = run.pcp_size > 1;
  // A drafter always runs blocks of full length.
  config.use_adaptive_verification =
      run.adaptive_verification.value_or(false) && run.model_tag != "dspark_head";
  config.use_dcp = run.dcp_size > 1;
  config.use_rswa = run.model_config && run.rswa_window.has_value();
  asked.request.num_heads = layer.num_heads;
  asked.request.backend = requested_backend(config, run);
  if (run.cache_config) asked.run_kv_cache_dtype = run.cache_dtype;
  return asked;
}

Selection SelectionCache::select(const BackendSelector& selector, const LayerRequest& asked) {
  const Entry key = {asked.request.backend, asked.request.config, asked.request.num_heads,
                     asked.run_kv_cache_dtype};
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) return found->second;
  }
  Selection selection = selector.select(asked.request);
  if (selection.error) return selection;
  const std::lock_guard lock(mutex_);
  return entries_.emplace(key, std::move(selection)).first->second;
}

void SelectionCache::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

std::size_t SelectionCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace attn
