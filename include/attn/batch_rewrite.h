// Variants that engines compute by rewriting the tables of a batch for ordinary causal attention.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/host_tensor.h"

namespace attn {

// A paged batch without its data; fields as in AttentionOp.
struct BatchTables {
  HostTensor query_start_loc;  // i32 [num_reqs + 1]
  HostTensor seq_lens;         // i32 [num_reqs]
  HostTensor block_table;      // i32 [num_reqs, width]
};

// Static sinks (vLLM's StaticSinkAttention): num_sink_tokens learned tokens, kept in the physical
// blocks 1, 2, ..., become the first keys of every request. Their block ids are put before every
// row of the table and every seq_len that is not 0 grows by num_sink_tokens, so context lengths
// grow too and causal rows see all of them. With a window, `sink_token_length` must be
// num_sink_tokens as well. Throws Error when num_sink_tokens is no multiple of block_size or a
// length does not fit an i32.
BatchTables with_static_sink(const BatchTables& batch, std::int64_t block_size,
                             std::int64_t num_sink_tokens);

// Query rows of a request that lie in one chunk, and the keys of that chunk up to the last of them.
struct LocalPiece {
  std::int64_t query_len = 0;
  std::int64_t first_key = 0;  // position; a multiple of the chunk size
  std::int64_t seq_len = 0;    // keys [first_key, first_key + seq_len)
};

// The rows of a request, which are its last ones, cut where floor(q / chunk_size) changes. Without
// rows: one piece, that of the last key. Throws Error unless chunk_size >= 1, seq_len >= 1 and
// 0 <= query_len <= seq_len.
std::vector<LocalPiece> local_pieces(std::int64_t query_len, std::int64_t seq_len,
                                     std::int64_t chunk_size);

// Chunked local attention as causal attention over virtual requests (vLLM's
// make_local_attention_virtual_batches): the rows of a request are cut where floor(q / chunk_size)
// changes, and each piece has the keys of its chunk, at most up to its last row, as its whole
// sequence. Query rows keep their order; a virtual row of the table has chunk_size / block_size
// columns, or as many as the table when that has fewer. Positions are local, so biases that depend
// on them (ALiBi, qq_bias) are not carried over. Throws Error when chunk_size is no multiple of
// block_size, a seq_len is below 1 or more than the table has slots for, or a request has more rows
// than keys.
BatchTables local_chunks(const BatchTables& batch, std::int64_t block_size,
                         std::int64_t chunk_size);

}  // namespace attn
