#include "attn/graph_mode.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "attn/vllm_error.h"

namespace attn {
namespace {

using enum GraphMode;

constexpr std::array<std::string_view, 5> kNames = {"NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY",
                                                    "FULL_AND_PIECEWISE"};

bool decodes_are_full(GraphMode mode) {
  return mode == kFull || mode == kFullDecodeOnly || mode == kFullAndPiecewise;
}

// Mixed batches cannot be FULL.
GraphMode without_full_mixed(const GraphModeRequest& request, const WeakestGraphSupport& weakest) {
  if (weakest.level == GraphSupport::kNever) {
    throw VllmError(
        "ValueError",
        fmt::format("CUDAGraphMode.{} is not supported with {} backend (support: "
                    "AttentionCGSupport.{}); please try cudagraph_mode=PIECEWISE, and "
                    "make sure compilation mode is VLLM_COMPILE",
                    name(request.mode), weakest.backend.value_or("None"), name(weakest.level)));
  }
  return request.attention_is_split ? kFullAndPiecewise : kFullDecodeOnly;
}

}  // namespace

std::string_view name(GraphMode mode) { return kNames[static_cast<std::size_t>(mode)]; }

std::optional<GraphMode> graph_mode_from_name(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<GraphMode>(found - kNames.begin());
}

WeakestGraphSupport weakest_graph_support(std::span<const GroupGraphSupport> groups) {
  WeakestGraphSupport weakest;
  for (const GroupGraphSupport& group : groups) {
    if (group.level < weakest.level) weakest = {group.level, group.backend};
  }
  return weakest;
}

std::optional<MissingVarlenSupport> missing_varlen_support(
    std::span<const GroupGraphSupport> groups, int max_query_len) {
  for (const GroupGraphSupport& group : groups) {
    if (group.level == GraphSupport::kAlways) continue;
    if (group.level == GraphSupport::kNever) return {{group.backend, std::nullopt}};
    if (!group.max_query_len || *group.max_query_len < max_query_len) {
      return {{group.backend, group.max_query_len}};
    }
  }
  return std::nullopt;
}

GraphMode resolve_graph_mode(const GraphModeRequest& request, const WeakestGraphSupport& weakest) {
  GraphMode mode = request.mode;
  if (mode == kNone) return mode;
  if (mode == kFull && weakest.level != GraphSupport::kAlways) {
    mode = without_full_mixed(request, weakest);
  }
  if (decodes_are_full(mode) && weakest.level == GraphSupport::kNever) {
    const bool pieces = request.attention_is_split || request.graph_partition;
    mode = request.compiled && pieces ? kPiecewise : kNone;
  }
  if (decodes_are_full(mode) && request.uniform_decode_query_len > 1 &&
      weakest.level < GraphSupport::kUniformBatch) {
    mode = request.attention_is_split ? kPiecewise : kNone;
  }
  if (request.piecewise_capture_available) return mode;
  if (mode == kPiecewise) return kNone;
  return mode == kFullAndPiecewise ? kFullDecodeOnly : mode;
}

}  // namespace attn
