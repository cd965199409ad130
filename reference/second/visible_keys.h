// Which keys a row sees, as a set put together from the sets that the mask's attributes describe.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/second/key_set.h"
#include "reference/second/row_place.h"

namespace attn::second {

// Keys inside [0, seq_len) by causality, windows, chunks, R-SWA and ranges.
KeySet base_keys(const MaskSpec& mask, const RowPlace& at);

// Of these, the ones that attn_mask leaves and no bias of -inf masks; ascending. No key or value is
// read: a score that is -inf by itself hides its key later.
std::vector<std::int64_t> visible_keys(const AttentionOp& op, const RowPlace& at,
                                       std::int64_t head);

}  // namespace attn::second
