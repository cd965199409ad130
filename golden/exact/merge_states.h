// The union of partial states.
#pragma once

#include "attn/operation.h"
#include "attn/output.h"

namespace attn::exact {

int answer(const MergeStatesOp& op, const Outputs& outputs);

}  // namespace attn::exact
