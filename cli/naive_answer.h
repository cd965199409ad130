// What a plain computation in the same precision gives: FlashAttention's own rule asks for it.
#pragma once

#include "attn/host_tensor.h"
#include "attn/problem.h"

namespace attn::cli {

// `out` [num_tokens, num_heads, head_size_v], stored as `type`: scores, weights and answer rounded
// to it one after the other, no tiles, as a naive program does. Absent for operations without such
// a program and for problems that would take long.
HostTensor naive_answer(const AttentionProblem& problem, DType type);

}  // namespace attn::cli
