// Union of partial attention states.
#pragma once

#include "attn/operation.h"
#include "attn/output.h"

namespace attn::reference {

// All live parts at once: weights e^(lse - max). A part with lse -inf or +inf is empty and its out
// is never read; all empty: out 0, lse -inf. A NaN lse makes its row NaN. lse is answered as
// natural log.
void merge_states(const MergeStatesOp& op, const Outputs& outputs);

}  // namespace attn::reference
