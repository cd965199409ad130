// The wrappers behind attn/backend_wrappers.h, also as vLLM's behave.
#pragma once

#include <string>

#include "attn/backend_wrappers.h"
#include "composite/composite_attention_backend.h"

namespace attn {

// With Conduct::kVllm image ranges are lost where vLLM loses them, and the batch of a capture is
// not rewritten.
AttentionBackendPtr fast_prefill_backend(AttentionBackendPtr wrapped, std::string prefix,
                                         Conduct conduct);
AttentionBackendPtr encoder_only_backend(AttentionBackendPtr wrapped, Conduct conduct);
AttentionBackendPtr chunked_local_backend(AttentionBackendPtr wrapped, int chunk, Conduct conduct);

}  // namespace attn
