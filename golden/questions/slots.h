// Where the tokens of a cache write go.
#pragma once

#include <cstdint>

#include "attn/host_tensor.h"
#include "golden/questions/draw.h"

namespace attn::questions {

// i64 [num_tokens]: the first entries of a permutation of all slots; -1 for about an eighth of the
// tokens.
HostTensor draw_slots(const Source& source, std::int64_t num_slots, std::int64_t num_tokens);

}  // namespace attn::questions
