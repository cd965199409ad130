#include "property_tests/definition.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/special_values.h"

namespace attn::property_tests {
namespace {

KeySet keys_from_to(std::int64_t first, std::int64_t last, std::int64_t seq_len) {
  KeySet keys;
  for (std::int64_t k = std::max<std::int64_t>(first, 0); k <= std::min(last, seq_len - 1); ++k) {
    keys.insert(keys.end(), k);
  }
  return keys;
}

void keep_only(KeySet& keys, const KeySet& others) {
  std::erase_if(keys, [&](std::int64_t k) { return !others.contains(k); });
}

// The chunk that holds position q; negative positions have chunks too.
std::int64_t chunk_of(std::int64_t q, std::int64_t size) {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(q) / static_cast<double>(size)));
}

KeySet ordinary_keys(const LogicalProblem& problem, const LogicalRequest& request, std::int64_t q) {
  const MaskSpec& mask = problem.settings.mask;
  const std::int64_t seq_len = request.seq_len();
  KeySet keys = keys_from_to(0, seq_len - 1, seq_len);
  if (problem.causal_per_request ? request.causal : mask.causal) {
    keep_only(keys, keys_from_to(0, q, seq_len));
  }
  if (mask.window_left >= 0) {
    KeySet window = keys_from_to(q - mask.window_left, seq_len - 1, seq_len);
    window.merge(keys_from_to(0, mask.sink_token_length - 1, seq_len));
    keep_only(keys, window);
  }
  if (mask.window_right >= 0) keep_only(keys, keys_from_to(0, q + mask.window_right, seq_len));
  if (mask.attention_chunk_size > 0) {
    const std::int64_t size = mask.attention_chunk_size;
    const std::int64_t chunk = chunk_of(q, size);
    keep_only(keys, keys_from_to((chunk - mask.attention_chunk_lookback) * size,
                                 (chunk + 1) * size - 1, seq_len));
  }
  return keys;
}

KeySet rswa_keys(const LogicalProblem& problem, const LogicalRequest& request, std::int64_t q) {
  KeySet keys = keys_from_to(0, request.rswa_prefix_len - 1, request.seq_len());
  keys.merge(keys_from_to(q - problem.settings.mask.rswa_window + 1, q, request.seq_len()));
  keep_only(keys, keys_from_to(0, q, request.seq_len()));
  return keys;
}

KeySet base_keys(const LogicalProblem& problem, const LogicalRequest& request, std::int64_t q) {
  const MaskSpec& mask = problem.settings.mask;
  if (mask.rswa_window > 0) return rswa_keys(problem, request, q);
  KeySet keys = ordinary_keys(problem, request, q);
  if (!problem.has_mm_ranges) return keys;
  for (const auto& [start, end] : request.mm_ranges) {
    if (start < 0 || start >= end || q < start || q > end) continue;
    const bool clamped = mask.mm_prefix_clamp && mask.window_left >= 0;
    const std::int64_t first =
        clamped ? std::max<std::int64_t>(start, q - mask.window_left) : start;
    keys.merge(keys_from_to(first, end, request.seq_len()));
  }
  return keys;
}

// Query-to-query bias of a row and key; 0 outside of the tree.
double tree_bias(const LogicalProblem& problem, const LogicalRequest& request, std::int64_t row,
                 std::int64_t k) {
  if (!problem.qq_bias.present()) return 0.0;
  const std::int64_t size = problem.qq_bias.shape()[0];
  const std::int64_t column = k - request.context_len();
  return row < size && 0 <= column && column < size ? problem.qq_bias.value(row, column) : 0.0;
}

long double alibi_bias(const LogicalProblem& problem, const LogicalRequest& request,
                       std::int64_t head, std::int64_t row, std::int64_t k) {
  if (!problem.alibi_slopes.present()) return 0.0L;
  const long double slope = problem.alibi_slopes.value(head);
  const std::int64_t q = request.context_len() + row;
  switch (problem.settings.bias.alibi_form) {
    case AlibiForm::kRow:
      return slope * static_cast<long double>(k - q);
    case AlibiForm::kContext:
      return slope * static_cast<long double>(k - request.context_len());
    case AlibiForm::kZero:
      return slope * static_cast<long double>(k);
    case AlibiForm::kAbs:
      return -slope * static_cast<long double>(q > k ? q - k : k - q);
    case AlibiForm::kSqrt:
      return k > q ? 0.0L : -slope * std::sqrt(static_cast<long double>(q - k));
    default:
      return 0.0L;
  }
}

// Scores of the keys one row sees, its sink, and their softmax.
class Row {
 public:
  Row(const LogicalProblem& problem, std::int64_t r, std::int64_t head, std::int64_t row)
      : problem_(problem), r_(r), head_(head), row_(row) {
    for (const std::int64_t k : visible_keys(problem, r, head, row)) {
      keys_.push_back(k);
      scores_.push_back(score(k));
    }
    if (problem.sinks.present()) sink_ = problem.sinks.value(head);
    const long double total = log_sum(true);
    for (const long double u : scores_) shares_.push_back(std::exp(u - total));
  }

  // ln sum e^score of the keys, and of the sink when it is asked for.
  long double log_sum(bool with_sink) const {
    const long double sink = with_sink ? sink_ : -kInf;
    long double top = sink;
    for (const long double u : scores_) top = std::max(top, u);
    if (std::isinf(top)) return top;
    long double sum = std::exp(sink - top);
    for (const long double u : scores_) sum += std::exp(u - top);
    return top + std::log(sum);
  }

  double out(std::int64_t dim) const {
    const std::int64_t kv_head = head_ / problem_.num_queries_per_kv();
    long double sum = 0.0L;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      sum +=
          shares_[i] * static_cast<long double>(value_value(problem_, r_, keys_[i], kv_head, dim));
    }
    return static_cast<double>(sum);
  }

 private:
  long double score(std::int64_t k) const {
    const LogicalRequest& request = problem_.request(r_);
    const std::int64_t kv_head = head_ / problem_.num_queries_per_kv();
    long double dot = 0.0L;
    for (std::int64_t d = 0; d < problem_.head_size; ++d) {
      dot += static_cast<long double>(query_value(problem_, r_, row_, head_, d)) *
             static_cast<long double>(key_value(problem_, r_, k, kv_head, d));
    }
    const long double s = dot * problem_.settings.scale;
    const long double cap = problem_.settings.logits_soft_cap;
    long double u = cap > 0.0L ? cap * std::tanh(s / cap) : s;
    u += alibi_bias(problem_, request, head_, row_, k);
    if (problem_.attn_bias.present()) u += score_element(problem_.attn_bias, r_, head_, row_, k);
    return u + tree_bias(problem_, request, row_, k);
  }

  const LogicalProblem& problem_;
  std::int64_t r_;
  std::int64_t head_;
  std::int64_t row_;
  std::vector<std::int64_t> keys_;
  std::vector<long double> scores_;
  std::vector<long double> shares_;  // e^(score - lse with the sink)
  long double sink_ = -kInf;
};

}  // namespace

KeySet visible_keys(const LogicalProblem& problem, std::int64_t r, std::int64_t head,
                    std::int64_t row) {
  const LogicalRequest& request = problem.request(r);
  KeySet keys = base_keys(problem, request, request.context_len() + row);
  std::erase_if(keys, [&](std::int64_t k) {
    const auto hidden_by = [&](const HostTensor& tensor, double hiding) {
      return tensor.present() && score_element(tensor, r, head, row, k) == hiding;
    };
    return hidden_by(problem.attn_mask, 0.0) || hidden_by(problem.attn_bias, -kInf) ||
           tree_bias(problem, request, row, k) == -kInf;
  });
  return keys;
}

VisibleKeys::VisibleKeys(const LogicalProblem& problem) {
  for (std::int64_t r = 0; r < static_cast<std::int64_t>(problem.requests.size()); ++r) {
    for (std::int64_t h = 0; h < problem.num_heads; ++h) {
      for (std::int64_t row = 0; row < problem.request(r).query_len(); ++row) {
        keys_[{r, h, row}] = visible_keys(problem, r, h, row);
      }
    }
  }
}

Answer answer_by_definition(const LogicalProblem& problem) {
  Answer answer;
  answer.num_tokens = problem.num_tokens();
  answer.num_heads = problem.num_heads;
  answer.head_size_v = problem.head_size_v;
  answer.lse.resize(static_cast<std::size_t>(answer.num_tokens * answer.num_heads));
  for (std::int64_t r = 0; r < static_cast<std::int64_t>(problem.requests.size()); ++r) {
    for (std::int64_t i = 0; i < problem.request(r).query_len(); ++i) {
      for (std::int64_t h = 0; h < problem.num_heads; ++h) {
        const Row row(problem, r, h, i);
        const std::int64_t token = problem.first_token(r) + i;
        answer.lse[static_cast<std::size_t>(h * answer.num_tokens + token)] =
            static_cast<double>(row.log_sum(problem.settings.lse_includes_sink));
        for (std::int64_t d = 0; d < problem.head_size_v; ++d) answer.out.push_back(row.out(d));
      }
    }
  }
  return answer;
}

}  // namespace attn::property_tests
