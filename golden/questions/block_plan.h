// Which physical block holds which logical block of a request.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/host_tensor.h"
#include "attn/kv_cache.h"
#include "golden/questions/draw.h"

namespace attn::questions {

struct BlockOptions {
  std::int64_t block_size = 4;
  // Blocks in the order of tensor `block_table`, from physical block 1 on; else in order from 0.
  bool permuted = false;
  // The first logical blocks of every request are the same physical ones.
  std::int64_t shared_blocks = 0;
  bool unused_tail = false;  // one more column; entries without a block are kUnusedBlock, else 0
  // Blocks as a kernel sees them; each block of block_size is block_size / this of them. 0: the
  // same.
  std::int64_t kernel_block_size = 0;
};

class BlockPlan {
 public:
  BlockPlan(const std::vector<std::int64_t>& seq_lens, const BlockOptions& options,
            std::uint64_t seed);

  const HostTensor& table() const { return table_; }  // i32 [num_reqs, width]
  std::int64_t num_blocks() const { return num_blocks_; }
  std::int64_t block_size() const { return block_size_; }

  // Where position k of a request lies.
  KvSlot slot(std::int64_t request, std::int64_t k) const;

  // Whose coordinates the key is drawn with: the lowest request that has its block.
  std::int64_t owner(std::int64_t request, std::int64_t k) const;

 private:
  void split_blocks(std::int64_t kernel_block_size, const std::vector<std::int64_t>& seq_lens,
                    bool unused_tail);

  std::int64_t block_size_;
  std::int64_t shared_tokens_;
  std::int64_t num_blocks_ = 0;
  HostTensor table_;
};

}  // namespace attn::questions
