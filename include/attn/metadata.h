// One step of an engine as its scheduler describes it to the attention backends of one cache group:
// vLLM's CommonAttentionMetadata, with its field names and invariants. Builders, routing and graph
// capture read it; attention_problem() (attn/executable_backend.h) makes an AttentionProblem of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace attn {

// Blocks of a request's KV cache, one row a request.
struct BlockTable {
  std::int64_t width = 0;
  std::vector<std::int32_t> entries;  // [num_rows, width], row after row

  std::span<const std::int32_t> row(std::int64_t index) const {
    return std::span(entries).subspan(static_cast<std::size_t>(index * width),
                                      static_cast<std::size_t>(width));
  }
  bool operator==(const BlockTable&) const = default;
};

// Positions start..end of a request, both included, that see each other both ways. start >= end is
// void: it shows nothing.
struct ImageRange {
  std::int32_t start = 0;
  std::int32_t end = 0;

  bool operator==(const ImageRange&) const = default;
};

struct RowImages {
  std::int32_t row = 0;
  std::vector<ImageRange> ranges;  // disjoint

  bool operator==(const RowImages&) const = default;
};

// A row is one request of the batch; a row with query length 0 is padding. Row r holds the query
// tokens query_start_loc[r] .. query_start_loc[r + 1] - 1, which are the last ones of its seq_len.
struct CommonAttentionMetadata {
  std::vector<std::int32_t> query_start_loc;      // [num_reqs + 1], from 0, never decreasing
  std::vector<std::int32_t> query_start_loc_cpu;  // the host's copy; routing reads this one
  std::vector<std::int32_t> seq_lens;             // [num_reqs], context and query
  std::int32_t num_reqs = 0;                      // with padding rows
  std::int32_t num_actual_tokens = 0;             // >= query_start_loc[num_reqs]; may count padding
  std::int32_t max_query_len = 0;                 // upper bounds; exact for real batches
  std::int32_t max_seq_len = 0;
  BlockTable block_table;                  // [num_reqs, width]
  std::vector<std::int64_t> slot_mapping;  // [>= num_actual_tokens]; -1 = do not write
  bool causal = true;
  std::optional<std::vector<bool>> causal_per_req;  // [num_reqs], overrides `causal`

  // Exact for rows that are still in their prompt; may be too large for decode rows.
  std::optional<std::vector<std::int32_t>> seq_lens_cpu_upper_bound;  // [num_reqs]
  std::optional<std::vector<bool>> is_prefilling;                     // [num_reqs]
  std::optional<std::vector<RowImages>> mm_req_doc_ranges;            // in the order of the map
  std::optional<std::vector<std::int64_t>> positions;                 // [num_actual_tokens]

  // Rows of the query whose logits are wanted: the first num_logits_indices entries.
  std::optional<std::vector<std::int32_t>> logits_indices_padded;
  std::optional<std::int32_t> num_logits_indices;
  std::optional<std::int32_t> max_logits_per_req;

  std::optional<std::vector<std::int32_t>> encoder_seq_lens;  // [num_reqs], cross attention
  std::optional<std::vector<std::int32_t>> encoder_seq_lens_cpu;
  std::optional<std::vector<std::int32_t>> dcp_local_seq_lens;  // [num_reqs], this rank's share
  std::optional<std::vector<std::int32_t>> dcp_local_seq_lens_cpu_upper_bound;
  std::optional<std::vector<std::int32_t>> req_idx;           // [num_reqs], row -> request
  std::optional<std::vector<std::int32_t>> rswa_prefix_lens;  // [num_reqs], always visible

  // Of the host's copy; not checked.
  std::int32_t query_len(std::int32_t row) const {
    const auto r = static_cast<std::size_t>(row);
    return query_start_loc_cpu[r + 1] - query_start_loc_cpu[r];
  }
  bool operator==(const CommonAttentionMetadata&) const = default;
};

// Throws Error, naming field, index and value, when a field has not the size said above, when
// query_start_loc is none, when logits indices are outside the query, or when a length is negative:
// what keeps every read of a batch in bounds. Image ranges may still name a row that there is not.
void validate_sizes(const CommonAttentionMetadata& batch);

// Also when the batch breaks any other invariant above. Lengths of padding rows are not looked at.
void validate(const CommonAttentionMetadata& batch);

}  // namespace attn
