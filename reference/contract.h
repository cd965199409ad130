// What the reference promises about its arithmetic.
#pragma once

#include "attn/contract.h"
#include "attn/problem.h"

namespace attn::reference {

// The contract "reference", and what the problem adds to it: parts of the keys, a sink that is
// merged with them, operands of 53 bits times a scale, projections.
PrecisionContract declared_contract(const AttentionProblem& problem);

}  // namespace attn::reference
