// Which batches are captured into graphs: the level that groups of layers have in common, and the
// mode that a run gets for the one it wants. A capture checks nothing; this comes before any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "attn/described_backend.h"

namespace attn {

enum class GraphMode : std::uint8_t {
  kNone,
  kPiecewise,
  kFull,
  kFullDecodeOnly,    // decode FULL, mixed NONE
  kFullAndPiecewise,  // decode FULL, mixed PIECEWISE
};

std::string_view name(GraphMode mode);  // "FULL_AND_PIECEWISE"
std::optional<GraphMode> graph_mode_from_name(std::string_view name);

struct GroupGraphSupport {
  std::string backend;  // its class name
  GraphSupport level = GraphSupport::kNever;
  std::optional<int> max_query_len;  // get_varlen_cudagraph_max_query_len
};

struct WeakestGraphSupport {
  GraphSupport level = GraphSupport::kAlways;
  std::optional<std::string> backend;  // the first with this level; none when all are kAlways
};

WeakestGraphSupport weakest_graph_support(std::span<const GroupGraphSupport> groups);

// A group that cannot replay decodes of up to a wanted number of tokens, and its bound.
struct MissingVarlenSupport {
  std::string backend;
  std::optional<int> max_query_len;  // none for kNever, whatever its bound
};

std::optional<MissingVarlenSupport> missing_varlen_support(
    std::span<const GroupGraphSupport> groups, int max_query_len);

struct GraphModeRequest {
  GraphMode mode = GraphMode::kNone;
  int uniform_decode_query_len = 1;  // tokens per request of decode batches
  bool attention_is_split = false;   // out of the compiled graph
  bool compiled = false;
  bool graph_partition = false;
  bool piecewise_capture_available = true;
};

// Throws VllmError ValueError when full graphs are wanted of a backend that has none.
GraphMode resolve_graph_mode(const GraphModeRequest& request, const WeakestGraphSupport& weakest);

}  // namespace attn
