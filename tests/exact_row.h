// One row of one head over keys with given logits: query 1, scale 1, key k holds logit k.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/operation.h"
#include "tests/tensor_pool.h"

namespace attn {

struct ExactRow {
  // values[k] are the elements of V of key k, as many for each key.
  ExactRow(const std::vector<double>& logits, const std::vector<std::vector<double>>& values) {
    const auto n = static_cast<std::int64_t>(logits.size());
    const std::int64_t size_v =
        values.empty() ? 1 : static_cast<std::int64_t>(values.front().size());
    std::vector<double> flat;
    for (const std::vector<double>& value : values) {
      flat.insert(flat.end(), value.begin(), value.end());
    }
    op.query = pool.values(DType::kF64, {1, 1, 1}, {1});
    op.query_start_loc = pool.values(DType::kI32, {2}, {0, 1});
    op.seq_lens = pool.values(DType::kI32, {1}, {static_cast<double>(n)});
    op.kv.kv_start_loc = pool.values(DType::kI32, {2}, {0, static_cast<double>(n)});
    op.kv.key = pool.values(DType::kF64, {n, 1, 1}, logits);
    op.kv.value = pool.values(DType::kF64, {n, 1, size_v}, flat);
  }

  void set_sink(double sink) { op.sinks = pool.values(DType::kF64, {1}, {sink}); }

  TensorPool pool;
  AttentionOp op;
};

}  // namespace attn
