// Which keys a row sees: attn/mask.h, one key at a time. Needles are placed by it, so it is written
// here and not taken from a backend.
#pragma once

#include <cstdint>

#include "attn/operation.h"

namespace attn::questions {

// Mask and biases only; neither query nor cache is read. 0 <= k < seq_len(request).
bool sees(const AttentionOp& op, std::int64_t request, std::int64_t head, std::int64_t row,
          std::int64_t k);

}  // namespace attn::questions
