// A valid problem for tests to change in one place.
#pragma once

#include <functional>
#include <string>

#include "attn/error.h"
#include "attn/problem.h"
#include "tests/tensor_pool.h"

namespace attn {

// Two requests with 2 and 1 new tokens and lengths 5 and 3; 4 heads on 2 KV heads of size 16;
// float32; causal. Paged: 5 blocks of 4 slots, the unused end of the table holds nonsense.
struct SmallProblem {
  SmallProblem() {
    op.query_start_loc = pool.values(DType::kI32, {3}, {0, 2, 3});
    op.seq_lens = pool.values(DType::kI32, {2}, {5, 3});
    op.query = pool.zeros(DType::kF32, {3, 4, 16});
    op.kv.layout = KvLayout::kPaged;
    op.kv.key = pool.zeros(DType::kF32, {5, 4, 2, 16});
    op.kv.value = pool.zeros(DType::kF32, {5, 4, 2, 16});
    op.kv.block_table = pool.values(DType::kI32, {2, 3}, {3, 1, 2147480000, 4, 2147480000, -1});
    op.scale = 0.25;
    op.mask.causal = true;
  }

  void make_varlen() {
    op.kv.layout = KvLayout::kVarlen;
    op.kv.block_table = TensorView{};
    op.kv.kv_start_loc = pool.values(DType::kI32, {3}, {0, 5, 8});
    op.kv.key = pool.zeros(DType::kF32, {8, 2, 16});
    op.kv.value = pool.zeros(DType::kF32, {8, 2, 16});
  }

  void make_per_token_head() {
    op.kv.encoding = KvEncoding::kPerTokenHead;
    op.kv.key = pool.zeros(DType::kI8, {5, 4, 2, 16});
    op.kv.value = pool.zeros(DType::kI8, {5, 4, 2, 16});
    op.kv.k_scale_cache = pool.zeros(DType::kF32, {5, 4, 2});
    op.kv.v_scale_cache = pool.zeros(DType::kF32, {5, 4, 2});
  }

  void make_nvfp4() {
    op.kv.encoding = KvEncoding::kNvfp4;
    op.kv.key = pool.zeros(DType::kF4E2M1, {5, 4, 2, 8});
    op.kv.value = pool.zeros(DType::kF4E2M1, {5, 4, 2, 8});
    op.kv.k_block_scale = pool.zeros(DType::kF8E4M3FN, {5, 4, 2, 1});
    op.kv.v_block_scale = pool.zeros(DType::kF8E4M3FN, {5, 4, 2, 1});
    op.kv.k_global_scale = pool.values(DType::kF32, {1}, {1});
    op.kv.v_global_scale = pool.values(DType::kF32, {1}, {1});
  }

  AttentionProblem problem() const { return AttentionProblem(op); }

  TensorPool pool;
  AttentionOp op;
};

// A problem of another operation.
inline AttentionProblem small_merge(TensorPool& pool) {
  MergeStatesOp op;
  op.out_parts = pool.zeros(DType::kF32, {2, 3, 4, 16});
  op.lse_parts = pool.zeros(DType::kF32, {2, 4, 3});
  return AttentionProblem(op);
}

// What validation says about the small problem after `change`; empty when it is accepted.
inline std::string error_after(const std::function<void(SmallProblem&)>& change) {
  SmallProblem p;
  change(p);
  try {
    p.problem();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace attn
