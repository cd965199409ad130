// The scores by which sparse attention chooses its tokens.
#pragma once

#include "attn/operation.h"
#include "attn/output.h"

namespace attn::reference {

// logits[t, n] = sum over heads of weights[t, h] * max(q[t, h] . k[n], 0) for k_start[t] <= n <
// k_end[t], -inf outside. A NaN product stays NaN.
void indexer(const IndexerOp& op, const Outputs& outputs);

}  // namespace attn::reference
