// Cascade attention: when all requests of a batch begin with the same KV blocks, one pass without a
// causal mask over that prefix serves all, a second pass the rest, and the two states are merged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "attn/metadata.h"

namespace attn {

// Tokens that every row with query tokens reads from the same blocks at the start of its table, in
// whole blocks, and at most as many as the shortest context holds: a prefix must not contain the
// position of any query token. 0 without such rows. Throws Error unless block_size >= 1 and the
// sizes of the batch fit.
std::int64_t shared_prefix_len(const CommonAttentionMetadata& batch, std::int32_t block_size);

// What layers have that a prefix pass does not do.
struct CascadeLayers {
  bool sliding_window = false;  // or any other bound on distance
  bool alibi = false;
  std::int32_t dcp_size = 1;
};

// Why a prefix of this length must not be computed apart; none = it may. A length that is no whole
// number of blocks, or more than the rows share, is the caller's to avoid (shared_prefix_len).
std::optional<std::string> cascade_refusal(const CommonAttentionMetadata& batch,
                                           std::int64_t prefix_len, const CascadeLayers& layers);

}  // namespace attn
