// Which keys a row may see, before its scores are known.
#pragma once

#include <cstdint>

#include "attn/mask.h"
#include "attn/operation.h"
#include "attn/view.h"

namespace attn::exact {

// One query row: row `row` of a request has the absolute position seq_len - query_len + row, which
// is negative when the request has more rows than keys.
struct RowPlace {
  std::int64_t token = 0;
  std::int64_t request = 0;
  std::int64_t row = 0;
  std::int64_t position = 0;
  std::int64_t context_len = 0;  // seq_len - query_len
  std::int64_t seq_len = 0;
};

// The row that a token is. `token` < query_start_loc[num_reqs].
RowPlace place_of(const TensorView& query_start_loc, const TensorView& seq_lens,
                  std::int64_t token);

// Base mask and attn_mask, for 0 <= k < seq_len (case format, "Which keys a row sees").
bool may_see(const MaskSpec& mask, const RowPlace& row, std::int64_t head, std::int64_t k);

// Position in an attn_mask or attn_bias, [requests|1, heads|1, rows|1, keys|1]: axes of one are
// broadcast.
const std::byte* broadcast_at(const TensorView& view, const RowPlace& row, std::int64_t head,
                              std::int64_t k);

}  // namespace attn::exact
