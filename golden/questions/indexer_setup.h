// A question of the operation `indexer` before anything is drawn.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/host_tensor.h"
#include "attn/operation.h"
#include "golden/questions/draw.h"

namespace attn::questions {

struct IndexerSetup {
  Source source = {};
  std::vector<std::int64_t> k_start = {};  // of each token
  std::vector<std::int64_t> k_end = {};
  std::int64_t num_keys = 9;
  std::int64_t num_heads = 3;
  std::int64_t head_size = 16;
  DType dtype = DType::kF32;
  DType key_dtype = DType::kF32;
  bool k_scale = false;  // f32 [num_keys, 1]
};

// The operation a setup describes; views look into `memory`.
IndexerOp draw_indexer(const IndexerSetup& setup, TensorStore& memory);

}  // namespace attn::questions
