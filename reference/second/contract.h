// What the second reference promises about its arithmetic.
#pragma once

#include "attn/contract.h"
#include "attn/problem.h"

namespace attn::second {

// Long double throughout, rounded to double once at the end.
PrecisionContract declared_contract(const AttentionProblem& problem);

}  // namespace attn::second
