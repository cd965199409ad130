#include "composite/row_fields.h"

#include <optional>

namespace attn {
namespace {

template <class T>
std::vector<T> part(const std::vector<T>& values, std::int64_t first, std::int64_t past) {
  return {values.begin() + first, values.begin() + past};
}

template <class T>
std::optional<std::vector<T>> part(const std::optional<std::vector<T>>& values, std::int64_t first,
                                   std::int64_t past) {
  return values ? std::optional(part(*values, first, past)) : std::nullopt;
}

std::optional<std::vector<RowImages>> images_of(const CommonAttentionMetadata& batch,
                                                std::int32_t first, std::int32_t past) {
  if (!batch.mm_req_doc_ranges) return std::nullopt;
  std::vector<RowImages> rows;
  for (const RowImages& images : *batch.mm_req_doc_ranges) {
    if (first <= images.row && images.row < past) {
      rows.push_back({images.row - first, images.ranges});
    }
  }
  return rows;
}

}  // namespace

CommonAttentionMetadata sliced_rows(const CommonAttentionMetadata& batch, std::int32_t first,
                                    std::int32_t past) {
  CommonAttentionMetadata rows;
  rows.num_reqs = past - first;
  rows.seq_lens = part(batch.seq_lens, first, past);
  const std::int64_t width = batch.block_table.width;
  rows.block_table = {width, part(batch.block_table.entries, first * width, past * width)};
  rows.causal = batch.causal;
  rows.causal_per_req = part(batch.causal_per_req, first, past);
  rows.seq_lens_cpu_upper_bound = part(batch.seq_lens_cpu_upper_bound, first, past);
  rows.is_prefilling = part(batch.is_prefilling, first, past);
  rows.mm_req_doc_ranges = images_of(batch, first, past);
  rows.encoder_seq_lens = part(batch.encoder_seq_lens, first, past);
  rows.encoder_seq_lens_cpu = part(batch.encoder_seq_lens_cpu, first, past);
  rows.dcp_local_seq_lens = part(batch.dcp_local_seq_lens, first, past);
  rows.dcp_local_seq_lens_cpu_upper_bound =
      part(batch.dcp_local_seq_lens_cpu_upper_bound, first, past);
  rows.req_idx = part(batch.req_idx, first, past);
  rows.rswa_prefix_lens = part(batch.rswa_prefix_lens, first, past);
  return rows;
}

}  // namespace attn
