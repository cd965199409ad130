// Lists of keys for the rows of sparse attention.
#pragma once

#include <cstdint>
#include <functional>

#include "attn/host_tensor.h"
#include "golden/questions/latent_setup.h"

namespace attn::questions {

// i32 [num_tokens, length]; an entry is -1 or below count_of(request of the row).
HostTensor draw_lists(const LatentSetup& setup, std::int64_t length,
                      const std::function<std::uint32_t(std::int64_t request)>& count_of);

// Below the request's seq_len.
HostTensor draw_positions(const LatentSetup& setup, std::int64_t length);

}  // namespace attn::questions
