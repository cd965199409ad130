#include "property_tests/hand_problem.h"

#include <utility>

namespace attn::property_tests {
namespace {

HostTensor filled_by(const HandElement& element, DType dtype, std::int64_t request,
                     std::int64_t first_position, std::int64_t rows, std::int64_t heads,
                     std::int64_t size) {
  HostTensor tensor(dtype, {rows, heads, size});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t d = 0; d < size; ++d) {
        tensor.set(element({request, first_position + i, h, d}), i, h, d);
      }
    }
  }
  return tensor;
}

}  // namespace

LogicalProblem hand_problem(const HandSizes& sizes, const HandElement& query,
                            const HandElement& key, const HandElement& value) {
  LogicalProblem problem;
  problem.num_heads = sizes.num_heads;
  problem.num_kv_heads = sizes.num_kv_heads;
  problem.head_size = sizes.head_size;
  problem.head_size_v = sizes.head_size_v;
  problem.query_dtype = sizes.query_dtype;
  problem.kv_dtype = sizes.kv_dtype;
  problem.settings.scale = 1.0;
  problem.settings.mask.causal = true;
  std::int64_t r = 0;
  for (const auto& [query_len, seq_len] : sizes.requests) {
    LogicalRequest request;
    request.query = filled_by(query, sizes.query_dtype, r, seq_len - query_len, query_len,
                              sizes.num_heads, sizes.head_size);
    request.key =
        filled_by(key, sizes.kv_dtype, r, 0, seq_len, sizes.num_kv_heads, sizes.head_size);
    request.value =
        filled_by(value, sizes.kv_dtype, r, 0, seq_len, sizes.num_kv_heads, sizes.head_size_v);
    problem.requests.push_back(std::move(request));
    ++r;
  }
  return problem;
}

}  // namespace attn::property_tests
