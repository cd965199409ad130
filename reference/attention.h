// The operation `attention`, answered from its definition.
#pragma once

#include "attn/operation.h"
#include "attn/output.h"

namespace attn::reference {

// Writes every present output of a validated problem; out and lse as F64, lse with the sink as the
// problem asks. Cost: products over visible keys only, plus one predicate test per (row, key).
void attention(const AttentionOp& op, const Outputs& outputs);

}  // namespace attn::reference
