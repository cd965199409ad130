#include "tests/cpu_definition.h"

#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "core/special_values.h"

namespace attn::cpu_tests {
namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
}

// The comment of attn/mask.h, clause by clause.
bool base_visible(const MaskSpec& m, std::int64_t r, std::int64_t q, std::int64_t k) {
  if (m.rswa_window != 0) {
    return k <= q && (k < int_at(m.rswa_prefix_lens, r) || q - k < m.rswa_window);
  }
  const bool causal = m.causal_per_req.present() ? int_at(m.causal_per_req, r) != 0 : m.causal;
  const bool left = m.window_left == -1 || q - k <= m.window_left;
  const std::int64_t c = m.attention_chunk_size;
  const std::int64_t chunks = c == 0 ? 0 : floor_div(q, c) - floor_div(k, c);
  bool visible = (!causal || k <= q) && (left || k < m.sink_token_length) &&
                 (m.window_right == -1 || k - q <= m.window_right) && chunks >= 0 &&
                 (c == 0 || chunks <= m.attention_chunk_lookback);
  for (std::int64_t i = 0; m.mm_prefix_ranges.present() && i < m.mm_prefix_ranges.shape[1]; ++i) {
    const std::int64_t a = int_at(m.mm_prefix_ranges, r, i, 0);
    const std::int64_t b = int_at(m.mm_prefix_ranges, r, i, 1);
    const bool both = 0 <= a && a < b && a <= q && q <= b && a <= k && k <= b;
    visible = visible || (both && (left || !m.mm_prefix_clamp));
  }
  return visible;
}

template <class... Index>
double broadcast_at(const TensorView& view, Index... index) {
  int axis = 0;
  const auto clip = [&](std::int64_t i) { return view.shape[axis++] == 1 ? 0 : i; };
  const std::int64_t at[] = {clip(index)...};
  return value_at(view, at[0], at[1], at[2], at[3]);
}

double alibi(AlibiForm form, double m, double q, double k, double context) {
  switch (form) {
    case AlibiForm::kNone:
      return 0.0;
    case AlibiForm::kRow:
      return m * (k - q);
    case AlibiForm::kContext:
      return m * (k - context);
    case AlibiForm::kZero:
      return m * k;
    case AlibiForm::kAbs:
      return -m * std::fabs(q - k);
    case AlibiForm::kSqrt:
      return k <= q ? -m * std::sqrt(q - k) : 0.0;
  }
  return 0.0;
}

bool element_masked(const AttentionOp& op, std::int64_t r, std::int64_t row, std::int64_t h,
                    std::int64_t k) {
  return op.mask.attn_mask.present() && broadcast_at(op.mask.attn_mask, r, h, row, k) == 0;
}

using Vectors = std::vector<std::vector<double>>;

// Rows of every (position, head) of one request, decoded.
struct Decoded {
  Vectors query;         // [row * num_heads + head]
  Vectors keys, values;  // [k * num_kv_heads + kv_head]
};

Decoded decode_request(const AttentionOp& op, std::int64_t r) {
  Decoded decoded;
  for (std::int64_t row = 0; row < op.query_len(r); ++row) {
    for (std::int64_t h = 0; h < op.num_heads(); ++h) {
      const std::int64_t g = h / op.num_queries_per_kv();
      const TensorView& scale = op.q_scale;
      const double q_scale = scale.present() ? value_at(scale, scale.shape[0] == 1 ? 0 : g) : 1.0;
      std::vector<double>& query = decoded.query.emplace_back();
      for (std::int64_t d = 0; d < op.head_size(); ++d) {
        query.push_back(value_at(op.query, op.query_start(r) + row, h, d) * q_scale);
      }
    }
  }
  for (std::int64_t k = 0; k < op.seq_len(r); ++k) {
    for (std::int64_t g = 0; g < op.num_kv_heads(); ++g) {
      std::vector<double>& key = decoded.keys.emplace_back();
      std::vector<double>& value = decoded.values.emplace_back();
      for (std::int64_t d = 0; d < op.head_size(); ++d) {
        key.push_back(decode_key(op.kv, r, k, g, d));
      }
      for (std::int64_t d = 0; d < op.head_size_v(); ++d) {
        value.push_back(decode_value(op.kv, r, k, g, d));
      }
    }
  }
  return decoded;
}

// Final score of a key, or nothing when it is not visible.
std::optional<double> score(const AttentionOp& op, std::int64_t r, std::int64_t row, std::int64_t h,
                            std::int64_t k, const std::vector<double>& query,
                            const std::vector<double>& key) {
  const std::int64_t context = op.context_len(r);
  if (!base_visible(op.mask, r, context + row, k)) return {};
  if (element_masked(op, r, row, h, k)) return {};
  double s = op.scale * std::inner_product(query.begin(), query.end(), key.begin(), 0.0);
  if (op.logits_soft_cap > 0) s = op.logits_soft_cap * std::tanh(s / op.logits_soft_cap);
  const BiasSpec& bias = op.bias;
  if (bias.alibi_form != AlibiForm::kNone) {
    s += alibi(bias.alibi_form, value_at(bias.alibi_slopes, h), double(context + row), double(k),
               double(context));
  }
  if (bias.attn_bias.present()) s += broadcast_at(bias.attn_bias, r, h, row, k);
  if (bias.qq_bias.present() && k >= context && k - context < bias.qq_bias.shape[1]) {
    s += value_at(bias.qq_bias, row, k - context);
  }
  if (s == -kInf) return {};
  return s;
}

void define_row(const AttentionOp& op, std::int64_t r, std::int64_t row, std::int64_t h,
                const Decoded& decoded, Answer& answer) {
  const std::int64_t t = op.query_start(r) + row;
  const std::int64_t g = h / op.num_queries_per_kv();
  const auto at = [&](std::int64_t k) {
    return static_cast<std::size_t>(k * op.num_kv_heads() + g);
  };
  const auto query = static_cast<std::size_t>(row * op.num_heads() + h);
  const double sink = op.sinks.present() ? value_at(op.sinks, h) : -kInf;
  std::map<std::int64_t, double> scores;
  double m = sink;
  for (std::int64_t k = 0; k < op.seq_len(r); ++k) {
    const auto s = score(op, r, row, h, k, decoded.query[query], decoded.keys[at(k)]);
    if (s) m = std::max(m, scores[k] = *s);
  }
  double* out = answer.out.data() + (t * op.num_heads() + h) * op.head_size_v();
  double sum = 0.0;
  for (const auto& [k, s] : scores) {
    const double weight = std::exp(s - m);
    sum += weight;
    for (std::int64_t d = 0; d < op.head_size_v(); ++d) {
      const double v = decoded.values[at(k)][static_cast<std::size_t>(d)];
      answer.largest_value = std::max(answer.largest_value, std::fabs(v));
      out[d] += weight * v;
    }
  }
  const double total = sum + (sink == -kInf ? 0.0 : std::exp(sink - m));
  for (std::int64_t d = 0; d < op.head_size_v() && total > 0; ++d) out[d] /= total;
  const double in_lse = op.lse_includes_sink ? total : sum;
  answer.lse[static_cast<std::size_t>(h * op.num_tokens() + t)] =
      in_lse > 0 ? m + std::log(in_lse) : -kInf;
}

}  // namespace

Answer define(const AttentionOp& op) {
  Answer answer;
  answer.out.resize(static_cast<std::size_t>(op.num_tokens() * op.num_heads() * op.head_size_v()));
  answer.lse.resize(static_cast<std::size_t>(op.num_tokens() * op.num_heads()));
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
    const Decoded decoded = decode_request(op, r);
    for (std::int64_t row = 0; row < op.query_len(r); ++row) {
      for (std::int64_t h = 0; h < op.num_heads(); ++h) {
        define_row(op, r, row, h, decoded, answer);
      }
    }
  }
  return answer;
}

bool seen_by_any_row(const AttentionOp& op, std::int64_t request, std::int64_t k) {
  const std::int64_t context = op.context_len(request);
  for (std::int64_t row = 0; row < op.query_len(request); ++row) {
    if (!base_visible(op.mask, request, context + row, k)) continue;
    for (std::int64_t h = 0; h < op.num_heads(); ++h) {
      if (!element_masked(op, request, row, h, k)) return true;
    }
  }
  return false;
}

}  // namespace attn::cpu_tests
