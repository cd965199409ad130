// Latent attention as plain attention.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn/problem.h"

namespace attn::cpu {

// What the kernels compute: an attention problem itself, and absorbed latent attention over a plain
// cache as attention with one KV head whose keys are the rows latent ‖ rope and whose values are
// their latent part. Empty for every other problem.
std::optional<AttentionOp> as_attention(const AttentionProblem& problem);

// Why as_attention() is empty for latent attention.
std::vector<std::string> latent_reasons(const MlaOp& op);

}  // namespace attn::cpu
