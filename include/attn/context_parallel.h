// Decode context parallelism: the tokens of a sequence dealt to ranks, `interleave` at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace attn {

// How many of `seq_len` tokens rank `rank` of `size` keeps. Throws Error unless seq_len >= 0,
// size >= 1, interleave >= 1, 0 <= rank < size.
std::int32_t dcp_local_seq_len(std::int32_t seq_len, std::int32_t size, std::int32_t rank,
                               std::int32_t interleave);

// [n] of one rank.
std::vector<std::int32_t> dcp_local_seq_lens(std::span<const std::int32_t> seq_lens,
                                             std::int32_t size, std::int32_t rank,
                                             std::int32_t interleave);

}  // namespace attn
