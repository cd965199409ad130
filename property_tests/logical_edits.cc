#include "property_tests/logical_edits.h"

#include <utility>

#include "attn/random.h"
#include "core/special_values.h"

namespace attn::property_tests {
namespace {

// Rows of one axis by index.
HostTensor taken(const HostTensor& tensor, int axis, const std::vector<std::int64_t>& indices) {
  if (!tensor.present()) return {};
  std::vector<std::int64_t> shape = tensor.shape();
  std::int64_t inner = 1;
  for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  const std::int64_t length = shape[static_cast<std::size_t>(axis)];
  const auto count = static_cast<std::int64_t>(indices.size());
  shape[static_cast<std::size_t>(axis)] = count;
  HostTensor result(tensor.dtype(), shape);
  const std::int64_t outer = result.num_units() == 0 ? 0 : result.num_units() / count / inner;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < count; ++i) {
      copy_units(tensor, (o * length + indices[static_cast<std::size_t>(i)]) * inner, inner, result,
                 (o * count + i) * inner);
    }
  }
  return result;
}

template <class Change>
void for_cache_tensors(LogicalRequest& request, const Change& change) {
  for (HostTensor* tensor :
       {&request.key, &request.value, &request.k_token_scale, &request.v_token_scale,
        &request.k_block_scale, &request.v_block_scale}) {
    *tensor = change(*tensor);
  }
}

// A full-size tensor of element(request, head, row, k); requests shorter than the longest have 0.
template <class Element>
HostTensor full_scores(const LogicalProblem& problem, DType dtype, const Element& element) {
  const auto num_reqs = static_cast<std::int64_t>(problem.requests.size());
  HostTensor tensor(dtype,
                    {num_reqs, problem.num_heads, problem.max_query_len(), problem.max_seq_len()});
  for (std::int64_t r = 0; r < num_reqs; ++r) {
    for (std::int64_t h = 0; h < problem.num_heads; ++h) {
      for (std::int64_t row = 0; row < problem.request(r).query_len(); ++row) {
        for (std::int64_t k = 0; k < problem.request(r).seq_len(); ++k) {
          tensor.set(element(r, h, row, k), r, h, row, k);
        }
      }
    }
  }
  return tensor;
}

// One more row of zeros at the front.
HostTensor with_zero_row(const HostTensor& tensor) {
  if (!tensor.present()) return {};
  std::vector<std::int64_t> shape = tensor.shape();
  ++shape[0];
  HostTensor longer(tensor.dtype(), shape);
  copy_units(tensor, 0, tensor.num_units(), longer, longer.num_units() - tensor.num_units());
  return longer;
}

}  // namespace

void hide_keys(LogicalProblem& problem, const ScorePlace& hidden) {
  problem.attn_mask = full_scores(problem, DType::kBool, [&](auto r, auto h, auto row, auto k) {
    const bool masked =
        problem.attn_mask.present() && score_element(problem.attn_mask, r, h, row, k) == 0.0;
    return masked || hidden(r, h, row, k) ? 0.0 : 1.0;
  });
}

void add_bias(LogicalProblem& problem, const ScoreTerm& term) {
  problem.attn_bias = full_scores(problem, DType::kF32, [&](auto r, auto h, auto row, auto k) {
    const double before =
        problem.attn_bias.present() ? score_element(problem.attn_bias, r, h, row, k) : 0.0;
    return before + term(r, h, row, k);
  });
}

void repeat_kv_heads(LogicalProblem& problem) {
  std::vector<std::int64_t> source;
  for (std::int64_t h = 0; h < problem.num_heads; ++h) {
    source.push_back(h / problem.num_queries_per_kv());
  }
  for (LogicalRequest& request : problem.requests) {
    for_cache_tensors(request, [&](const HostTensor& tensor) { return taken(tensor, 1, source); });
  }
  for (HostTensor* scale : {&problem.k_scale, &problem.v_scale, &problem.q_scale}) {
    const std::size_t rank = scale->shape().size();
    if (rank == 2) *scale = taken(*scale, 1, source);
    if (rank == 1 && scale->shape()[0] != 1) *scale = taken(*scale, 0, source);
  }
  problem.num_kv_heads = problem.num_heads;
}

void prepend_zero_key(LogicalProblem& problem, const std::function<double(std::int64_t)>& bias) {
  const HostTensor old_mask = std::exchange(problem.attn_mask, {});
  const HostTensor old_bias = std::exchange(problem.attn_bias, {});
  for (LogicalRequest& request : problem.requests) for_cache_tensors(request, with_zero_row);
  if (old_mask.present()) {
    hide_keys(problem, [&](auto r, auto h, auto row, auto k) {
      return k > 0 && score_element(old_mask, r, h, row, k - 1) == 0.0;
    });
  }
  add_bias(problem, [&](auto r, auto h, auto row, auto k) {
    if (k == 0) return bias(h);
    return old_bias.present() ? score_element(old_bias, r, h, row, k - 1) : 0.0;
  });
}

void keep_keys(LogicalRequest& request, const std::vector<std::int64_t>& positions) {
  for_cache_tensors(request, [&](const HostTensor& tensor) { return taken(tensor, 0, positions); });
}

void decode_cache(LogicalProblem& problem, DType dtype) {
  LogicalProblem plain = problem;
  plain.query_dtype = dtype;
  plain.kv_dtype = dtype;
  plain.settings.kv.encoding = KvEncoding::kPlain;
  for (HostTensor* scale : {&plain.k_scale, &plain.v_scale, &plain.q_scale, &plain.k_global_scale,
                            &plain.v_global_scale}) {
    *scale = {};
  }
  for (std::size_t i = 0; i < plain.requests.size(); ++i) {
    const auto r = static_cast<std::int64_t>(i);
    LogicalRequest& request = plain.requests[i];
    const auto decoded = [&](std::int64_t rows, std::int64_t heads, std::int64_t size,
                             auto element) {
      HostTensor tensor(dtype, {rows, heads, size});
      for (std::int64_t j = 0; j < tensor.num_units(); ++j) {
        tensor.set_code(
            j, encode(dtype, element(problem, r, j / size / heads, j / size % heads, j % size),
                      Overflow::kSaturate));
      }
      return tensor;
    };
    const std::int64_t seq_len = request.seq_len();
    request.query = decoded(request.query_len(), problem.num_heads, problem.head_size, query_value);
    request.key = decoded(seq_len, problem.num_kv_heads, problem.head_size, key_value);
    request.value = decoded(seq_len, problem.num_kv_heads, problem.head_size_v, value_value);
    request.k_token_scale = request.v_token_scale = {};
    request.k_block_scale = request.v_block_scale = {};
  }
  problem = std::move(plain);
}

void replace_key_and_value(LogicalProblem& problem, const LogicalProblem& other, std::int64_t r,
                           std::int64_t k) {
  const LogicalRequest& from = other.request(r);
  LogicalRequest& to = problem.request(r);
  const auto copy_row = [k](const HostTensor& source, HostTensor& target) {
    if (!source.present()) return;
    const std::int64_t units = source.num_units() / source.shape()[0];
    copy_units(source, k * units, units, target, k * units);
  };
  copy_row(from.key, to.key);
  copy_row(from.value, to.value);
  copy_row(from.k_token_scale, to.k_token_scale);
  copy_row(from.v_token_scale, to.v_token_scale);
  copy_row(from.k_block_scale, to.k_block_scale);
  copy_row(from.v_block_scale, to.v_block_scale);
}

std::int64_t put_nan(LogicalProblem& problem, Side side, std::int64_t r, std::int64_t k,
                     std::int64_t kv_head) {
  LogicalRequest& request = problem.request(r);
  const bool key = side == Side::kKey;
  switch (problem.settings.kv.encoding) {
    case KvEncoding::kPerTokenHead:
      (key ? request.k_token_scale : request.v_token_scale).set(kNaN, k, kv_head);
      return key ? problem.head_size : problem.head_size_v;
    case KvEncoding::kNvfp4:
      (key ? request.k_block_scale : request.v_block_scale).set(kNaN, k, kv_head, 0);
      return 16;
    default:
      (key ? request.key : request.value).set(kNaN, k, kv_head, 0);
      return 1;
  }
}

std::int64_t draw_below(std::uint64_t seed, std::uint64_t i, std::int64_t n) {
  const Words words = random_words(seed, i + 1000000, RandomTensor::kConfiguration, 0);
  return below(words, static_cast<std::uint32_t>(n));
}

}  // namespace attn::property_tests
