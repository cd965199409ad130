// A question of the operation `cache_write` before anything is drawn.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/host_tensor.h"
#include "attn/operation.h"
#include "golden/questions/draw.h"
#include "golden/questions/setup.h"

namespace attn::questions {

struct WriteSetup {
  Source source = {};
  std::int64_t num_tokens = 5;  // with a slot
  std::int64_t num_rows = 7;    // of key and value; those beyond num_tokens are NaN
  std::int64_t num_kv_heads = 2;
  std::int64_t head_size = 16;
  std::int64_t head_size_v = 8;
  std::int64_t num_blocks = 3;
  std::int64_t block_size = 4;
  DType dtype = DType::kF32;  // of key and value
  DType key_cache_dtype = DType::kF32;
  DType value_cache_dtype = DType::kF32;
  KvEncoding encoding = KvEncoding::kPlain;
  bool heads_first = false;
  Scales scales = Scales::kNone;
  // The first elements of token 0, head 0, in place of drawn ones.
  std::vector<double> first_key = {};
  std::vector<double> first_value = {};
};

// The operation a setup describes; views look into `memory`.
CacheWriteOp draw_write(const WriteSetup& setup, TensorStore& memory);

}  // namespace attn::questions
