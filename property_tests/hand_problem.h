// Problems written down by hand: sizes and three formulas.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "property_tests/logical_problem.h"

namespace attn::property_tests {

struct HandSizes {
  struct Request {
    std::int64_t query_len;
    std::int64_t seq_len;
  };
  std::vector<Request> requests;
  std::int64_t num_heads = 1;
  std::int64_t num_kv_heads = 1;
  std::int64_t head_size = 1;
  std::int64_t head_size_v = 1;
  DType query_dtype = DType::kF32;
  DType kv_dtype = DType::kF32;
};

// Coordinates of an element; position is absolute.
struct HandPlace {
  std::int64_t request;
  std::int64_t position;
  std::int64_t head;
  std::int64_t dim;
};
using HandElement = std::function<double(const HandPlace&)>;

// Scale 1, causal, nothing else; more is set on the result. Values are rounded to the dtypes.
LogicalProblem hand_problem(const HandSizes& sizes, const HandElement& query,
                            const HandElement& key, const HandElement& value);

}  // namespace attn::property_tests
