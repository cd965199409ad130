// Where the parts of a row's state are stored.
#pragma once

#include <cstdint>

#include "attn/output.h"
#include "golden/exact/rounded_row.h"
#include "golden/exact/row_state.h"

namespace attn::exact {

void store_out(RoundedRow& to, const Outputs& outputs, std::int64_t token, std::int64_t head,
               const RowState& state);
void store_lse(RoundedRow& to, const Outputs& outputs, std::int64_t token, std::int64_t head,
               const RowState& state, bool includes_sink);
void store_sums(RoundedRow& to, const Outputs& outputs, std::int64_t token, std::int64_t head,
                const RowState& state);

// The sums of softmax `which` (0 or 1) of a differential pair.
void store_sums_of_pair(RoundedRow& to, const Outputs& outputs, int which, std::int64_t token,
                        std::int64_t pair, const RowState& state);

}  // namespace attn::exact
