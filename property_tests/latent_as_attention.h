// Absorbed latent attention as what it is: attention of all heads over one KV head.
#pragma once

#include "attn/host_tensor.h"
#include "attn/operation.h"

namespace attn::property_tests {

// Latent rows of a plain cache as keys and values in F64, without a cache; no exec.
AttentionOp attention_over_latents(const MlaOp& op, TensorStore& memory);

}  // namespace attn::property_tests
