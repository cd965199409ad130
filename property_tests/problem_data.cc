#include "property_tests/problem_data.h"

#include <algorithm>
#include <utility>

#include "property_tests/cache_placement.h"

namespace attn::property_tests {
namespace {

HostTensor integers(DType dtype, std::vector<std::int64_t> shape,
                    const std::vector<std::int64_t>& values) {
  return {dtype, std::move(shape), std::vector<double>(values.begin(), values.end())};
}

// Whether a request reads element (request axis, ., row axis, key axis) of a score tensor.
bool addressed(const LogicalProblem& problem, const std::vector<std::int64_t>& shape,
               std::int64_t a, std::int64_t row, std::int64_t k) {
  for (std::size_t r = 0; r < problem.requests.size(); ++r) {
    const LogicalRequest& request = problem.requests[r];
    const bool mine = shape[0] == 1 || a == static_cast<std::int64_t>(r);
    const bool row_read = shape[2] == 1 ? request.query_len() > 0 : row < request.query_len();
    const bool key_read = shape[3] == 1 ? request.seq_len() > 0 : k < request.seq_len();
    if (mine && row_read && key_read) return true;
  }
  return false;
}

// attn_mask or attn_bias with unused columns; what nobody reads is filled.
HostTensor padded_scores(const LogicalProblem& problem, const HostTensor& from,
                         const MemoryForm& form) {
  if (!from.present()) return {};
  std::vector<std::int64_t> shape = from.shape();
  const std::int64_t columns = shape[3];
  const bool one_for_all_keys = columns == 1 && problem.max_seq_len() != 1;
  if (!one_for_all_keys) shape[3] += form.column_padding;
  HostTensor to = filled(from.dtype(), shape, form.fill);
  for (std::int64_t line = 0; line < shape[0] * shape[1] * shape[2]; ++line) {
    const std::int64_t row = line % shape[2];
    const std::int64_t a = line / (shape[1] * shape[2]);
    for (std::int64_t k = 0; k < columns; ++k) {
      if (!addressed(problem, from.shape(), a, row, k)) continue;
      to.set_code(line * shape[3] + k, from.code(line * columns + k));
    }
  }
  return to;
}

// i32 [num_reqs, most ranges of a request, 2]; what is missing is (0, 0) and reversed pairs.
HostTensor range_tensor(const LogicalProblem& problem) {
  std::size_t most = 0;
  for (const LogicalRequest& request : problem.requests) {
    most = std::max(most, request.mm_ranges.size());
  }
  HostTensor ranges(DType::kI32, {static_cast<std::int64_t>(problem.requests.size()),
                                  static_cast<std::int64_t>(most), 2});
  for (std::size_t r = 0; r < problem.requests.size(); ++r) {
    const auto& own = problem.requests[r].mm_ranges;
    for (std::size_t i = 0; i < most; ++i) {
      const auto [start, end] =
          i < own.size() ? own[i] : (i % 2 == 0 ? std::pair(0, 0) : std::pair(3, 2));
      ranges.set(start, r, i, 0);
      ranges.set(end, r, i, 1);
    }
  }
  return ranges;
}

}  // namespace

ProblemData::ProblemData(const LogicalProblem& problem, const MemoryForm& form)
    : op_(problem.settings) {
  place_lengths(problem);
  place_query(problem, form);
  op_.kv = place_cache(problem, form, store_);
  place_mask(problem, form);
  place_shared(problem);
}

void ProblemData::place_lengths(const LogicalProblem& problem) {
  std::vector<std::int64_t> starts = {0};
  std::vector<std::int64_t> lengths;
  for (const LogicalRequest& request : problem.requests) {
    starts.push_back(starts.back() + request.query_len());
    lengths.push_back(request.seq_len());
  }
  const auto num_reqs = static_cast<std::int64_t>(lengths.size());
  op_.query_start_loc = store_.keep(integers(DType::kI32, {num_reqs + 1}, starts));
  op_.seq_lens = store_.keep(integers(DType::kI32, {num_reqs}, lengths));
}

void ProblemData::place_query(const LogicalProblem& problem, const MemoryForm& form) {
  const std::int64_t size = problem.head_size;
  const std::int64_t width = size + form.dim_padding;
  HostTensor query =
      filled(problem.query_dtype,
             {problem.num_tokens() + form.row_padding, problem.num_heads, width}, form.fill);
  std::int64_t line = 0;
  for (const LogicalRequest& request : problem.requests) {
    for (std::int64_t i = 0; i < request.query_len() * problem.num_heads; ++i, ++line) {
      copy_units(request.query, i * size, size, query, line * width);
    }
  }
  op_.query = slice(store_.keep(std::move(query)), 2, 0, size);
}

void ProblemData::place_mask(const LogicalProblem& problem, const MemoryForm& form) {
  const auto num_reqs = static_cast<std::int64_t>(problem.requests.size());
  std::vector<std::int64_t> causal;
  std::vector<std::int64_t> prefix_lens;
  for (const LogicalRequest& request : problem.requests) {
    causal.push_back(request.causal ? 1 : 0);
    prefix_lens.push_back(request.rswa_prefix_len);
  }
  MaskSpec& mask = op_.mask;
  if (problem.causal_per_request) {
    mask.causal_per_req = store_.keep(integers(DType::kBool, {num_reqs}, causal));
  }
  if (mask.rswa_window != 0) {
    mask.rswa_prefix_lens = store_.keep(integers(DType::kI32, {num_reqs}, prefix_lens));
  }
  if (problem.has_mm_ranges) mask.mm_prefix_ranges = store_.keep(range_tensor(problem));
  mask.attn_mask = store_.keep(padded_scores(problem, problem.attn_mask, form));
  op_.bias.attn_bias = store_.keep(padded_scores(problem, problem.attn_bias, form));
}

void ProblemData::place_shared(const LogicalProblem& problem) {
  op_.bias.alibi_slopes = store_.keep(problem.alibi_slopes);
  op_.bias.qq_bias = store_.keep(problem.qq_bias);
  op_.sinks = store_.keep(problem.sinks);
  op_.q_scale = store_.keep(problem.q_scale);
  op_.output_scale = store_.keep(problem.output_scale);
}

}  // namespace attn::property_tests
