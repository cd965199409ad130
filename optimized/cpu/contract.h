// What the CPU backend promises about its arithmetic.
#pragma once

#include "attn/contract.h"
#include "attn/operation.h"

namespace attn::cpu {

// `exec` is what is honoured of the problem's.
PrecisionContract attention_contract(const AttentionOp& op, const ExecSpec& exec);

}  // namespace attn::cpu
