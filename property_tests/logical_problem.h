// An attention problem by its coordinates (request, position, head, dim), before it has a place in
// memory. Properties change problems in this form; ProblemData lays them out.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "attn/host_tensor.h"
#include "attn/operation.h"

namespace attn::property_tests {

// One request. Keys and values are stored codes, as a cache of the problem's encoding holds them.
struct LogicalRequest {
  HostTensor query;  // [query_len, num_heads, head_size]
  HostTensor key;    // [seq_len, num_kv_heads, head_size] (f4_e2m1: bytes, two elements each)
  HostTensor value;  // [seq_len, num_kv_heads, head_size_v]
  HostTensor k_token_scale, v_token_scale;     // kPerTokenHead: f32 [seq_len, num_kv_heads]
  HostTensor k_block_scale, v_block_scale;     // kNvfp4: f8_e4m3fn [seq_len, num_kv_heads, n/16]
  bool causal = true;                          // with LogicalProblem::causal_per_request
  std::int32_t rswa_prefix_len = 0;            // with settings.mask.rswa_window
  std::vector<std::pair<int, int>> mm_ranges;  // with LogicalProblem::has_mm_ranges

  std::int64_t query_len() const { return query.shape()[0]; }
  std::int64_t seq_len() const { return key.shape()[0]; }
  std::int64_t context_len() const { return seq_len() - query_len(); }
  bool operator==(const LogicalRequest&) const = default;
};

struct LogicalProblem {
  std::int64_t num_heads = 1;
  std::int64_t num_kv_heads = 1;
  std::int64_t head_size = 1;
  std::int64_t head_size_v = 1;
  DType query_dtype = DType::kF32;
  DType kv_dtype = DType::kF32;
  std::vector<LogicalRequest> requests;

  AttentionOp settings;  // scale, cap, mask, bias form, encoding, exec; its tensors stay absent
  bool causal_per_request = false;
  bool has_mm_ranges = false;  // false: no mm_prefix_ranges tensor at all

  // As the fields of AttentionOp, MaskSpec, BiasSpec and KvCacheView; absent ones stay so.
  HostTensor alibi_slopes, sinks, q_scale, output_scale;
  HostTensor attn_mask, attn_bias, qq_bias;
  HostTensor k_scale, v_scale, k_global_scale, v_global_scale;

  std::int64_t num_queries_per_kv() const { return num_heads / num_kv_heads; }
  std::int64_t num_tokens() const;
  std::int64_t max_query_len() const;
  std::int64_t max_seq_len() const;
  std::int64_t first_token(std::int64_t request) const;  // row of `out` where a request begins

  const LogicalRequest& request(std::int64_t r) const {
    return requests[static_cast<std::size_t>(r)];
  }
  LogicalRequest& request(std::int64_t r) { return requests[static_cast<std::size_t>(r)]; }
};

// What the codes of one element mean: stored value times its scales, in double.
double query_value(const LogicalProblem& problem, std::int64_t r, std::int64_t row,
                   std::int64_t head, std::int64_t dim);
double key_value(const LogicalProblem& problem, std::int64_t r, std::int64_t k,
                 std::int64_t kv_head, std::int64_t dim);
double value_value(const LogicalProblem& problem, std::int64_t r, std::int64_t k,
                   std::int64_t kv_head, std::int64_t dim);

// Element (request, head, row, k) of attn_mask or attn_bias, whose axes may have length 1.
double score_element(const HostTensor& tensor, std::int64_t r, std::int64_t head, std::int64_t row,
                     std::int64_t k);

// The problem of request `r` alone, its rows [first_row, first_row + num_rows) and its keys
// [0, num_keys). Rows keep their absolute positions when num_keys = context_len + first_row +
// num_rows. qq_bias is kept as it is.
LogicalProblem part_of(const LogicalProblem& problem, std::int64_t r, std::int64_t first_row,
                       std::int64_t num_rows, std::int64_t num_keys);
LogicalProblem request_alone(const LogicalProblem& problem, std::int64_t r);

}  // namespace attn::property_tests
