// The smallest problem with chosen scores and values.
#pragma once

#include <vector>

#include "tests/cpu_random_problem.h"

namespace attn::cpu_tests {

// Varlen, one request, one head, head size 1: query_len rows of 1, so that keys are scores.
struct ScoreProblem {
  Memory memory;
  AttentionOp op;

  ScoreProblem(const std::vector<double>& keys, const std::vector<double>& values,
               std::int64_t query_len = 1) {
    const auto n = static_cast<std::int64_t>(keys.size());
    op.query = memory.list(DType::kF32, {query_len, 1, 1},
                           std::vector<double>(static_cast<std::size_t>(query_len), 1.0));
    op.query_start_loc = memory.list(DType::kI32, {2}, {0, double(query_len)});
    op.seq_lens = memory.list(DType::kI32, {1}, {double(n)});
    op.kv.key = memory.list(DType::kF32, {n, 1, 1}, keys);
    op.kv.value = memory.list(DType::kF32, {n, 1, 1}, values);
    op.kv.kv_start_loc = memory.list(DType::kI32, {2}, {0, double(n)});
  }

  void sink(double value, bool in_lse = true) {
    op.sinks = memory.list(DType::kF32, {1}, {value});
    op.lse_includes_sink = in_lse;
  }
};

}  // namespace attn::cpu_tests
