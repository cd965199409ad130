// Decodes to the front of a batch, prefills to its end: which requests change places (vLLM's
// reorder_batch_to_split_decodes_and_prefills).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace attn {

// Per request, [n] each; a request in its first step has computed no token.
struct RequestProgress {
  std::span<const std::int32_t> num_scheduled_tokens;
  std::span<const std::int32_t> num_computed_tokens;
  std::span<const std::int32_t> num_prompt_tokens;
};

struct BatchReorder {
  std::vector<std::int32_t> order;                           // [n], the request at each position
  std::vector<std::pair<std::int32_t, std::int32_t>> swaps;  // positions, in order of execution

  bool changed() const { return !swaps.empty(); }
  bool operator==(const BatchReorder&) const = default;
};

// In the result come decodes, then short extends (up to decode_threshold tokens, still in the
// prompt), then long extends, then prefills. Requests that are in their region's place stay, the
// others keep their order within a region. Throws Error unless the three have one length.
BatchReorder reorder_batch(const RequestProgress& requests, std::int32_t decode_threshold);

}  // namespace attn
