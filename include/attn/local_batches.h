// Chunked local attention as an ordinary batch: virtual rows, each with the keys of one chunk
// (vLLM's make_local_attention_virtual_batches). Row arithmetic is local_pieces()
// (attn/batch_rewrite.h).
#pragma once

#include <cstdint>
#include <vector>

#include "attn/derived_batches.h"
#include "attn/metadata.h"

namespace attn {

// Which blocks of a table the virtual rows have. Fits every table of the same rows.
class LocalBlocks {
 public:
  // For update_block_table. Throws Error when the table has other rows or no columns.
  BlockTable remap(const BlockTable& table) const;

 private:
  friend class LocalBatchMaker;

  struct VirtualRow {
    std::int32_t row = 0;
    std::int64_t first_column = 0;
  };
  std::int64_t num_rows_ = 0;
  std::int64_t width_ = 0;  // columns of a virtual row
  std::vector<VirtualRow> virtual_rows_;
};

struct LocalBatch {
  CommonAttentionMetadata batch;
  LocalBlocks blocks;
};

// Token order stays; positions become local to the chunk. Throws VllmError AssertionError when
// chunk_size is no multiple of block_size, Error for a row without keys, with more query tokens
// than keys, or without block_table columns. Columns beyond a row's repeat its last one.
//
// Faithful: image ranges move with their chunk; Error when a query token is in a range that has
// keys of another chunk, since a virtual row sees only its own. Keeps causal flags and req_idx.
// Error for fields that say nothing about chunks: encoder lengths, context parallel lengths, R-SWA
// prefixes.
LocalBatch make_local_batch(const CommonAttentionMetadata& batch, std::int32_t chunk_size,
                            std::int32_t block_size, Derivation derivation);

}  // namespace attn
