// The operation `attention`, answered from its definition.
#pragma once

#include "attn/operation.h"
#include "attn/output.h"
#include "reference/rows.h"

namespace attn::reference {

// Writes every present output of a validated operation; out and lse as F64.
void attention(const AttentionOp& op, const Outputs& outputs);

// The rows of an operation.
RowProblem row_problem(const AttentionOp& op);

}  // namespace attn::reference
