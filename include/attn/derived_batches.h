// Batches made of a batch for some layers or passes of a step. vLLM's lose image ranges and causal
// flags on the way, so that routing and masks of the derived batch are those of another question;
// the faithful form keeps what a token sees. All throw Error when the sizes of the batch do not fit
// (validate_sizes).
#pragma once

#include <cstdint>
#include <optional>

#include "attn/metadata.h"

namespace attn {

enum class Derivation : std::uint8_t {
  kVllm,      // the fields of vLLM 0.33.0's result
  kFaithful,  // every token sees the keys that it saw; Error where no derived batch can say that
};

// Without the padding behind the first `num_reqs` rows and `num_tokens` tokens. Faithful: also
// Error when a token of these rows is cut off; image ranges of the rows stay. Throws Error for more
// than there are.
CommonAttentionMetadata unpadded(const CommonAttentionMetadata& batch, std::int32_t num_tokens,
                                 std::int32_t num_reqs, Derivation derivation);

// For layers that read another layer's KV cache: only the query rows whose logits are wanted; none
// when the batch serves as it is. Slots stay as they are, since these layers do not write. Throws
// VllmError AssertionError when max_logits_per_req is missing. Faithful: Error unless the wanted
// rows of each request are its last ones, in order, which is what a batch can say; keeps image
// ranges, causal flags and the lengths of other caches.
std::optional<CommonAttentionMetadata> fast_prefill(const CommonAttentionMetadata& batch,
                                                    Derivation derivation);

}  // namespace attn
