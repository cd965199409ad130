// Differential attention: the difference of two softmaxes over neighbouring head pairs.
#pragma once

#include "attn/operation.h"
#include "attn/output.h"

namespace attn::reference {

// Query heads 2p, 2p + 1 and KV heads 2j, 2j + 1 make pairs; pair p reads KV pair floor(p /
// (num_heads / num_kv_heads)). With A0 from heads 2p and 2j, A1 from 2p + 1 and 2j + 1, and V the
// two KV heads' values behind one another: out = (1 - lambda_init) * norm(A0 V - lambda * A1 V),
// norm(y) = w y / sqrt(mean y^2 + eps), or y without norm_weight (Ye et al.: Differential
// Transformer, ICLR 2025).
void differential(const DifferentialOp& op, const Outputs& outputs);

}  // namespace attn::reference
