// Batches for tests, written as lists.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "attn/metadata.h"

namespace attn {

// Rows with these query lengths and seq_lens, exact bounds, and a table of `width` columns in which
// no block comes twice: row r has width * r, width * r + 1, ... Slots are 0, 1, 2, ...
inline CommonAttentionMetadata small_batch(const std::vector<std::int32_t>& query_lens,
                                           std::vector<std::int32_t> seq_lens,
                                           std::int64_t width = 1) {
  CommonAttentionMetadata batch;
  batch.query_start_loc = {0};
  for (const std::int32_t query_len : query_lens) {
    batch.query_start_loc.push_back(batch.query_start_loc.back() + query_len);
    batch.max_query_len = std::max(batch.max_query_len, query_len);
  }
  batch.query_start_loc_cpu = batch.query_start_loc;
  batch.num_reqs = static_cast<std::int32_t>(query_lens.size());
  batch.num_actual_tokens = batch.query_start_loc.back();
  for (const std::int32_t seq_len : seq_lens) {
    batch.max_seq_len = std::max(batch.max_seq_len, seq_len);
  }
  batch.block_table.width = width;
  batch.block_table.entries.resize(query_lens.size() * static_cast<std::size_t>(width));
  std::iota(batch.block_table.entries.begin(), batch.block_table.entries.end(), 0);
  batch.slot_mapping.resize(static_cast<std::size_t>(batch.num_actual_tokens));
  std::iota(batch.slot_mapping.begin(), batch.slot_mapping.end(), 0);
  batch.seq_lens = std::move(seq_lens);
  batch.seq_lens_cpu_upper_bound = batch.seq_lens;
  return batch;
}

// With the logits of these tokens wanted, at most `longest` of a row.
inline CommonAttentionMetadata with_logits(CommonAttentionMetadata batch,
                                           std::vector<std::int32_t> tokens, std::int32_t longest) {
  batch.num_logits_indices = static_cast<std::int32_t>(tokens.size());
  batch.logits_indices_padded = std::move(tokens);
  batch.max_logits_per_req = longest;
  return batch;
}

}  // namespace attn
