#include "attn/layout_resolution.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "attn/vllm_error.h"
#include "core/contains.h"

namespace attn {
namespace {

[[noreturn]] void value_error(const std::string& text) { throw VllmError("ValueError", text); }

bool have_one_shape(std::span<const CachePages> pages) {
  const auto shape = [](const CachePages& one) {
    return std::tuple(one.num_heads, one.num_states, one.page_bytes);
  };
  return std::all_of(pages.begin(), pages.end(),
                     [&](const CachePages& one) { return shape(one) == shape(pages.front()); });
}

// A draft model that every rank keeps whole, beside sharded caches, with pages of several sizes.
bool mix_sharded_sizes(std::span<const CachePages> pages) {
  const auto differs = [&](auto member) {
    return std::any_of(pages.begin(), pages.end(),
                       [&](const CachePages& one) { return one.*member != pages.front().*member; });
  };
  return differs(&CachePages::dcp_sharded) && differs(&CachePages::page_bytes);
}

CacheLayouts candidates_of(const LayoutRequest& request) {
  const std::span<const CacheLayouts> supported = request.supported;
  if (supported.empty() || std::any_of(supported.begin(), supported.end(),
                                       [](const CacheLayouts& list) { return list.empty(); })) {
    throw VllmError("AssertionError", "No worker reported supported KV cache layouts.");
  }
  if (std::any_of(supported.begin(), supported.end(),
                  [&](const CacheLayouts& list) { return list != supported.front(); })) {
    throw VllmError(
        "AssertionError",
        fmt::format("Workers disagree on supported KV cache layouts: {}.", to_string(supported)));
  }
  CacheLayouts candidates = supported.front();
  if (!have_one_shape(request.pages)) {
    std::erase_if(candidates, [](CacheLayout layout) { return !is_block_compact(layout); });
    if (candidates.empty()) {
      value_error(
          fmt::format("Specs with mixed HNC shapes need a block-compact layout, but none "
                      "is in every supported set: {}.",
                      to_string(supported)));
    }
  }
  if (mix_sharded_sizes(request.pages)) {
    std::erase_if(candidates, [](CacheLayout layout) { return !is_block_outermost(layout); });
    if (candidates.empty()) {
      value_error(
          fmt::format("DCP with a replicated draft and mixed KV page sizes requires a "
                      "block-outer KV cache layout; supported sets: {}.",
                      to_string(supported)));
    }
  }
  return candidates;
}

}  // namespace

CacheLayout cache_layout_of(const std::string& name) {
  if (name == "NHD") return CacheLayout::kLBNHC;
  if (name == "HND") return CacheLayout::kLBHNC;
  if (const std::optional<CacheLayout> layout = cache_layout_from_name(name)) return *layout;
  CacheLayouts all;
  for (int i = 0; i < kNumCacheLayouts; ++i) all.push_back(static_cast<CacheLayout>(i));
  value_error(fmt::format("Unknown KV cache layout '{}'. Valid layouts: {}", name, to_string(all)));
}

ResolvedLayout resolve_kv_cache_layout(const LayoutRequest& request) {
  if (request.recorded) return {*request.recorded, std::nullopt};
  const CacheLayouts candidates = candidates_of(request);
  if (request.requested) {
    const CacheLayout layout = cache_layout_of(*request.requested);
    if (!contains(candidates, layout)) {
      value_error(
          fmt::format("VLLM_KV_CACHE_LAYOUT={} does not satisfy every supported set; valid "
                      "layouts: {}.",
                      *request.requested, to_string(candidates)));
    }
    return {layout, std::nullopt};
  }
  if (!request.connector) return {candidates.front(), std::nullopt};
  const CacheLayout preferred = cache_layout_of(*request.connector);
  if (contains(candidates, preferred)) return {preferred, std::nullopt};
  return {candidates.front(), fmt::format("the KV connector prefers {}, which is none of {}",
                                          *request.connector, to_string(candidates))};
}

void record_kv_cache_layout(std::optional<CacheLayout>& recorded, CacheLayout layout) {
  if (recorded && *recorded != layout) {
    value_error(fmt::format("KV cache layout is already resolved to {}; cannot change it to {}.",
                            name(*recorded), name(layout)));
  }
  recorded = layout;
}

}  // namespace attn
