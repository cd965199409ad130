#include "property_tests/logical_problem.h"

#include <algorithm>

namespace attn::property_tests {
namespace {

double tensor_scale(const HostTensor& scale, std::int64_t r, std::int64_t kv_head) {
  if (!scale.present()) return 1.0;
  if (scale.shape().size() == 2) return scale.value(r, kv_head);
  return scale.value(scale.shape()[0] == 1 ? 0 : kv_head);
}

struct Side {
  const HostTensor& codes;
  const HostTensor& scale;
  const HostTensor& token_scale;
  const HostTensor& block_scale;
  const HostTensor& global_scale;
};

double side_value(KvEncoding encoding, const Side& side, std::int64_t r, std::int64_t k,
                  std::int64_t kv_head, std::int64_t dim) {
  if (encoding == KvEncoding::kPerTokenHead) {
    return side.codes.value(k, kv_head, dim) * side.token_scale.value(k, kv_head);
  }
  if (encoding == KvEncoding::kNvfp4) {
    const TensorView codes = side.codes.view();
    const std::uint64_t pair = load_code(codes.dtype, codes.at(k, kv_head, dim / 2));
    const double code = decode(DType::kF4E2M1, dim % 2 == 0 ? pair & 0xF : pair >> 4);
    return code * side.block_scale.value(k, kv_head, dim / 16) * side.global_scale.value(0);
  }
  return side.codes.value(k, kv_head, dim) * tensor_scale(side.scale, r, kv_head);
}

HostTensor rows_of(const HostTensor& tensor, std::int64_t first, std::int64_t count) {
  return tensor.present() ? sliced(tensor, 0, first, count) : HostTensor();
}

// attn_mask or attn_bias of one request, some rows, some keys. Axes of length 1 stay.
HostTensor score_part(const HostTensor& tensor, std::int64_t r, std::int64_t first_row,
                      std::int64_t num_rows, std::int64_t num_keys) {
  if (!tensor.present()) return {};
  HostTensor part = tensor;
  if (part.shape()[0] != 1) part = sliced(part, 0, r, 1);
  if (part.shape()[2] != 1) part = sliced(part, 2, first_row, num_rows);
  if (part.shape()[3] != 1) part = sliced(part, 3, 0, num_keys);
  return part;
}

HostTensor scale_part(const HostTensor& scale, std::int64_t r) {
  return scale.shape().size() == 2 ? sliced(scale, 0, r, 1) : scale;
}

}  // namespace

std::int64_t LogicalProblem::num_tokens() const {
  return first_token(static_cast<std::int64_t>(requests.size()));
}

std::int64_t LogicalProblem::first_token(std::int64_t r) const {
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < r; ++i) first += request(i).query_len();
  return first;
}

std::int64_t LogicalProblem::max_query_len() const {
  std::int64_t longest = 0;
  for (const LogicalRequest& r : requests) longest = std::max(longest, r.query_len());
  return longest;
}

std::int64_t LogicalProblem::max_seq_len() const {
  std::int64_t longest = 0;
  for (const LogicalRequest& r : requests) longest = std::max(longest, r.seq_len());
  return longest;
}

double query_value(const LogicalProblem& problem, std::int64_t r, std::int64_t row,
                   std::int64_t head, std::int64_t dim) {
  return problem.request(r).query.value(row, head, dim) *
         tensor_scale(problem.q_scale, r, head / problem.num_queries_per_kv());
}

double key_value(const LogicalProblem& problem, std::int64_t r, std::int64_t k,
                 std::int64_t kv_head, std::int64_t dim) {
  const LogicalRequest& request = problem.request(r);
  return side_value(problem.settings.kv.encoding,
                    {request.key, problem.k_scale, request.k_token_scale, request.k_block_scale,
                     problem.k_global_scale},
                    r, k, kv_head, dim);
}

double value_value(const LogicalProblem& problem, std::int64_t r, std::int64_t k,
                   std::int64_t kv_head, std::int64_t dim) {
  const LogicalRequest& request = problem.request(r);
  return side_value(problem.settings.kv.encoding,
                    {request.value, problem.v_scale, request.v_token_scale, request.v_block_scale,
                     problem.v_global_scale},
                    r, k, kv_head, dim);
}

double score_element(const HostTensor& tensor, std::int64_t r, std::int64_t head, std::int64_t row,
                     std::int64_t k) {
  const auto index = [&](std::size_t axis, std::int64_t i) {
    return tensor.shape()[axis] == 1 ? 0 : i;
  };
  return tensor.value(index(0, r), index(1, head), index(2, row), index(3, k));
}

LogicalProblem part_of(const LogicalProblem& problem, std::int64_t r, std::int64_t first_row,
                       std::int64_t num_rows, std::int64_t num_keys) {
  LogicalProblem part = problem;
  LogicalRequest request = problem.request(r);
  request.query = rows_of(request.query, first_row, num_rows);
  for (HostTensor* tensor :
       {&request.key, &request.value, &request.k_token_scale, &request.v_token_scale,
        &request.k_block_scale, &request.v_block_scale}) {
    *tensor = rows_of(*tensor, 0, num_keys);
  }
  part.requests = {std::move(request)};
  part.k_scale = scale_part(problem.k_scale, r);
  part.v_scale = scale_part(problem.v_scale, r);
  part.attn_mask = score_part(problem.attn_mask, r, first_row, num_rows, num_keys);
  part.attn_bias = score_part(problem.attn_bias, r, first_row, num_rows, num_keys);
  return part;
}

LogicalProblem request_alone(const LogicalProblem& problem, std::int64_t r) {
  const LogicalRequest& request = problem.request(r);
  return part_of(problem, r, 0, request.query_len(), request.seq_len());
}

}  // namespace attn::property_tests
