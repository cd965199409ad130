// Image ranges that change no mask.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/attention_backend.h"
#include "attn/metadata.h"
#include "attn/problem.h"

namespace attn {

// Requests of which an image range may show a row a key that it does not see without. "May" where
// attention is chunked or the first keys are exempt from a window; exact elsewhere.
std::vector<std::int64_t> requests_with_image_masks(const AttentionOp& op);

// The same for the rows of a batch, in any layer of the group. Query lengths are the host's copy.
std::vector<std::int32_t> rows_with_image_masks(const CommonAttentionMetadata& batch,
                                                const BuilderArguments& group);

}  // namespace attn
