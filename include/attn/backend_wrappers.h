// Backends that rewrite every batch and leave the rest to the backend that they wrap: vLLM's
// wrappers, whose class name is a prefix and the wrapped class's. Metadata is a wrapper's own; its
// implementation unwraps it. Unlike vLLM's they rewrite on every path, captures included, and keep
// image ranges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn/attention_backend.h"

namespace attn {

// Layers that share another layer's cache compute only the rows whose logits are wanted. Class
// name: `prefix` and the wrapped class's.
AttentionBackendPtr fast_prefill_backend(AttentionBackendPtr wrapped, std::string prefix);

// The logits fields of the batch before it was rewritten; null when fast prefill did not build it.
struct WantedLogits {
  std::optional<std::vector<std::int32_t>> logits_indices_padded;
  std::optional<std::int32_t> num_logits_indices;
};
const WantedLogits* wanted_logits(const AttentionMetadata& metadata);

// Attention without a causal mask. Prefix "EncoderOnlyAttention_".
AttentionBackendPtr encoder_only_backend(AttentionBackendPtr wrapped);

// Chunked local attention as an ordinary causal batch; never captured. Prefix
// "ChunkedLocalAttention_<chunk>_".
AttentionBackendPtr chunked_local_backend(AttentionBackendPtr wrapped, int chunk);

}  // namespace attn
