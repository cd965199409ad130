// A whole test job: 16 mixed requests as a server would schedule them in one step.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/problem.h"

namespace attn::bench {

// 5,118 query and 16,175 KV tokens, 32 query heads over 8 KV heads of size 128, bf16 pages of 16 in
// shuffled order, causal; random data. Owns its memory.
class JobBatch {
 public:
  JobBatch();

  AttentionProblem problem() const;

  // Floating-point operations that must be done: 4 * head_size per visible (query, key) pair and
  // head.
  double visible_flops() const;

 private:
  std::vector<std::int32_t> query_start_loc_;
  std::vector<std::int32_t> seq_lens_;
  std::vector<std::int32_t> block_table_;
  std::int64_t max_blocks_ = 0;
  std::int64_t num_blocks_ = 0;
  std::vector<std::uint16_t> query_;
  std::vector<std::uint16_t> key_cache_;
  std::vector<std::uint16_t> value_cache_;
};

}  // namespace attn::bench
