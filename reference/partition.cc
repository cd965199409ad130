#include "reference/partition.h"

#include <map>
#include <tuple>

namespace attn::reference {

std::vector<int> partition_keys(const ExecSpec& exec, std::int64_t seq_len) {
  std::int64_t chunk = exec.kv_chunk;
  if (exec.num_splits != 0) {
    chunk = seq_len / exec.num_splits + (seq_len % exec.num_splits != 0 ? 1 : 0);
  }
  const std::int64_t interleave = exec.dcp_interleave == 0 ? 1 : exec.dcp_interleave;

  std::map<std::tuple<std::int64_t, bool, std::int64_t>, int> number_of;
  std::vector<int> part_of;
  for (std::int64_t k = 0; k < seq_len; ++k) {
    const std::int64_t chunk_idx = chunk == 0 ? 0 : k / chunk;
    const bool in_prefix = exec.has_common_prefix && k < exec.common_prefix_len;
    const std::int64_t rank = exec.dcp_size == 0 ? 0 : k / interleave % exec.dcp_size;
    const auto next = static_cast<int>(number_of.size());
    part_of.push_back(number_of.try_emplace({chunk_idx, in_prefix, rank}, next).first->second);
  }
  return part_of;
}

}  // namespace attn::reference
