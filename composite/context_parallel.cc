#include "attn/context_parallel.h"

#include <fmt/core.h>

#include <algorithm>

#include "attn/error.h"

namespace attn {

std::int32_t dcp_local_seq_len(std::int32_t seq_len, std::int32_t size, std::int32_t rank,
                               std::int32_t interleave) {
  if (seq_len < 0) throw Error(fmt::format("seq_len is {}, must be at least 0", seq_len));
  if (size < 1) throw Error(fmt::format("dcp_size is {}, must be at least 1", size));
  if (interleave < 1) throw Error(fmt::format("interleave is {}, must be at least 1", interleave));
  if (rank < 0 || rank >= size) {
    throw Error(fmt::format("dcp_rank is {}, dcp_size is {}", rank, size));
  }
  const std::int64_t step = interleave;
  const std::int64_t base = seq_len / step / size * step;  // of whole rounds
  const std::int64_t rest = seq_len - base * size;
  return static_cast<std::int32_t>(base + std::clamp<std::int64_t>(rest - step * rank, 0, step));
}

std::vector<std::int32_t> dcp_local_seq_lens(std::span<const std::int32_t> seq_lens,
                                             std::int32_t size, std::int32_t rank,
                                             std::int32_t interleave) {
  std::vector<std::int32_t> lens;
  lens.reserve(seq_lens.size());
  for (const std::int32_t seq_len : seq_lens) {
    lens.push_back(dcp_local_seq_len(seq_len, size, rank, interleave));
  }
  return lens;
}

}  // namespace attn
