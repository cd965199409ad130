// Differential attention: (1 - lambda_init) * norm(A0 v - lambda * A1 v) of head pairs.
#pragma once

#include "attn/operation.h"
#include "attn/output.h"

namespace attn::exact {

int answer(const DifferentialOp& op, const Outputs& outputs);

}  // namespace attn::exact
