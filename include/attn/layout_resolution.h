// The one KV cache layout of a model, from what its workers support, its caches and the wishes of
// its user.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "attn/cache_layouts.h"

namespace attn {

// The shape of one kind of cache pages.
struct CachePages {
  std::int64_t num_heads = 1;   // KV heads or head slots
  std::int64_t num_states = 1;  // tokens of a block
  std::int64_t page_bytes = 0;  // num_heads * num_states * bytes of the content
  bool dcp_sharded = true;      // dealt to the ranks of decode context parallelism
};

struct LayoutRequest {
  std::optional<CacheLayout> recorded;      // of an earlier resolution; nothing else counts then
  std::span<const CacheLayouts> supported;  // one list per worker, best first
  std::span<const CachePages> pages;
  std::optional<std::string> requested;  // VLLM_KV_CACHE_LAYOUT; NHD and HND are names, too
  std::optional<std::string> connector;  // what a KV connector prefers
};

struct ResolvedLayout {
  CacheLayout layout;
  std::optional<std::string> warning;  // the connector does not get what it prefers
};

// A layout by its name or, of one layer, NHD (LBNHC) and HND (LBHNC). VllmError ValueError for
// another name.
CacheLayout cache_layout_of(const std::string& name);

// Throws VllmError ValueError or AssertionError when no layout fits.
ResolvedLayout resolve_kv_cache_layout(const LayoutRequest& request);

// Keeps the layout for later resolutions. VllmError ValueError when another one is recorded.
void record_kv_cache_layout(std::optional<CacheLayout>& recorded, CacheLayout layout);

}  // namespace attn
