#include "property_tests/draw_problem.h"

#include <cmath>

#include "attn/random.h"
#include "core/special_values.h"
#include "property_tests/draw_values.h"

namespace attn::property_tests {
namespace {

constexpr double kSoftCap = 2.0;
constexpr std::int64_t kBatch = 1000;  // the place of what the requests share among their draws

// What a config leaves open about a request. `entry` numbers independent draws.
enum ConfigEntry : std::uint64_t {
  kQueryLen,
  kContextLen,
  kCausal,
  kPrefixLen,
  kNumRanges,
  kRanges,
  kScale = 32
};

Words config_words(const ProblemConfig& config, std::int64_t r, std::uint64_t entry) {
  return random_words(config.seed, static_cast<std::uint64_t>(r) * 64 + entry,
                      RandomTensor::kConfiguration, 0);
}

int draw_up_to(const ProblemConfig& config, std::int64_t r, std::uint64_t entry, int most) {
  return static_cast<int>(
      below(config_words(config, r, entry), static_cast<std::uint32_t>(most) + 1));
}

struct RequestLengths {
  std::int64_t query_len;
  std::int64_t seq_len;
};

RequestLengths draw_lengths(const ProblemConfig& config, std::int64_t r) {
  switch (config.lengths) {
    case Lengths::kEqual:
      break;
    case Lengths::kRagged: {
      const int query_len = draw_up_to(config, r, kQueryLen, config.query_len);
      return {query_len, query_len + draw_up_to(config, r, kContextLen, config.context_len)};
    }
    case Lengths::kBeyond:
      return {config.query_len, draw_up_to(config, r, kContextLen, config.query_len - 1)};
  }
  return {config.query_len, config.query_len + config.context_len};
}

// Up to three pairs: apart, overlapping, touching, reversed, of one token, reaching beyond the
// sequence or starting before it.
std::vector<std::pair<int, int>> draw_ranges(const ProblemConfig& config, std::int64_t r,
                                             std::int64_t seq_len) {
  std::vector<std::pair<int, int>> ranges;
  const int count = draw_up_to(config, r, kNumRanges, 3);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t entry = kRanges + 3 * static_cast<std::uint64_t>(i);
    const bool touches = i > 0 && draw_up_to(config, r, entry, 2) == 0;
    const int start = touches ? ranges.back().second + 1
                              : draw_up_to(config, r, entry + 1, static_cast<int>(seq_len)) - 1;
    ranges.emplace_back(start, start + draw_up_to(config, r, entry + 2, 9) - 1);
  }
  return ranges;
}

MaskSpec mask_of(const ProblemConfig& config) {
  const std::int64_t bound = config.window - 1;
  MaskSpec mask;
  mask.causal = true;
  switch (config.mask) {
    case MaskKind::kCausal:
    case MaskKind::kCausalPerRequest:
    case MaskKind::kRanges:
      break;
    case MaskKind::kNone:
      mask.causal = false;
      break;
    case MaskKind::kSymmetricWindow:
      mask.causal = false;
      mask.window_left = bound;
      mask.window_right = bound;
      break;
    case MaskKind::kLeftWindow:
      mask.causal = false;
      mask.window_left = bound;
      break;
    case MaskKind::kRectangle:
      mask.causal = false;
      mask.window_left = bound;
      mask.window_right = config.reach;
      break;
    case MaskKind::kChunked:
    case MaskKind::kChunkedNonCausal:
      mask.causal = config.mask == MaskKind::kChunked;
      mask.attention_chunk_size = config.window;
      mask.attention_chunk_lookback = config.reach;
      break;
    case MaskKind::kRswa:
      mask.rswa_window = config.window;
      break;
    case MaskKind::kWindow:
    case MaskKind::kWindowSinkTokens:
    case MaskKind::kRangesWindow:
    case MaskKind::kRangesClamped:
      mask.window_left = bound;
      break;
  }
  if (config.mask == MaskKind::kWindowSinkTokens) mask.sink_token_length = config.reach;
  mask.mm_prefix_clamp = config.mask == MaskKind::kRangesClamped;
  return mask;
}

// A tensor [num_reqs|1, num_heads|1, max query_len|1, max seq_len|1] of element(words).
template <class Element>
HostTensor draw_scores(const ProblemConfig& config, const LogicalProblem& problem, DType dtype,
                       RandomTensor which, const Element& element) {
  const auto axis = [&](unsigned bit, std::int64_t length) {
    return (config.one_for_all & bit) != 0 ? 1 : length;
  };
  const auto num_reqs = static_cast<std::int64_t>(problem.requests.size());
  HostTensor tensor(
      dtype,
      {axis(kOneForAllRequests, num_reqs), axis(kOneForAllHeads, problem.num_heads),
       axis(kOneForAllRows, problem.max_query_len()), axis(kOneForAllKeys, problem.max_seq_len())});
  const std::vector<std::int64_t>& shape = tensor.shape();
  for (std::int64_t r = 0; r < shape[0]; ++r) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t row = 0; row < shape[2]; ++row) {
        for (std::int64_t k = 0; k < shape[3]; ++k) {
          const Words words = random_words(config.seed, random_index(r, k, h, row), which,
                                           static_cast<std::uint32_t>(config.family));
          tensor.set(element(words), r, h, row, k);
        }
      }
    }
  }
  return tensor;
}

// A draft tree: a node sees its ancestors and itself, each with a finite bias; the rest is masked.
HostTensor draw_tree(const ProblemConfig& config, std::int64_t size) {
  HostTensor bias(DType::kF32, {size, size});
  constexpr std::int64_t kParent = 4000;  // a column that no tree has
  const auto words = [&](std::int64_t row, std::int64_t column) {
    return random_words(config.seed, random_index(0, column, 0, row), RandomTensor::kQqBias,
                        static_cast<std::uint32_t>(config.family));
  };
  for (std::int64_t i = 0; i < size * size; ++i) bias.set(-kInf, i / size, i % size);
  for (std::int64_t row = 0; row < size; ++row) {
    std::int64_t node = row;
    bias.set(bell(words(row, node)), row, node);
    while (node > 0) {  // its parent is any node before it
      node = below(words(node, kParent), static_cast<std::uint32_t>(node));
      bias.set(bell(words(row, node)), row, node);
    }
  }
  return bias;
}

void draw_biases(const ProblemConfig& config, LogicalProblem& problem) {
  if (config.alibi != AlibiForm::kNone) {
    const std::vector<float> slopes = alibi_slopes(problem.num_heads);
    problem.alibi_slopes = HostTensor(DType::kF32, {problem.num_heads},
                                      std::vector<double>(slopes.begin(), slopes.end()));
  }
  if (config.attn_mask) {
    problem.attn_mask =
        draw_scores(config, problem, DType::kBool, RandomTensor::kAttnMask,
                    [](const Words& words) { return random_mask_bit(words) ? 1.0 : 0.0; });
  }
  if (config.attn_bias != BiasKind::kNone) {
    const bool masks = config.attn_bias == BiasKind::kSomeMasked;
    problem.attn_bias = draw_scores(config, problem, DType::kF32, RandomTensor::kAttnBias,
                                    [masks](const Words& words) {
                                      const bool hidden = masks && (words[1] >> 30) == 0;
                                      return hidden ? -kInf : bell(words);
                                    });
  }
  // The last row of the longest request lies outside of the tree.
  if (config.tree && problem.max_query_len() > 0) {
    problem.qq_bias = draw_tree(config, std::max<std::int64_t>(problem.max_query_len() - 1, 1));
  }
}

void draw_sinks(const ProblemConfig& config, LogicalProblem& problem) {
  if (config.sinks == SinkKind::kNone) return;
  problem.sinks = HostTensor(DType::kF32, {problem.num_heads});
  for (std::int64_t h = 0; h < problem.num_heads; ++h) {
    const Words words = random_words(config.seed, random_index(0, 0, h, 0), RandomTensor::kSinks,
                                     static_cast<std::uint32_t>(config.family));
    const bool absent = config.sinks == SinkKind::kSomeMinusInfinity && (words[1] >> 31) != 0;
    problem.sinks.set(absent ? -kInf : 2.0 * bell(words), h);
  }
}

}  // namespace

LogicalProblem draw_problem(const ProblemConfig& config) {
  LogicalProblem problem;
  problem.num_heads = std::int64_t{config.num_kv_heads} * config.group;
  problem.num_kv_heads = config.num_kv_heads;
  problem.head_size = config.head_size;
  problem.head_size_v = config.head_size_v;
  problem.query_dtype = config.query_dtype;
  problem.kv_dtype = dtype_of(config.kv);
  problem.causal_per_request = config.mask == MaskKind::kCausalPerRequest;
  problem.has_mm_ranges = config.mask == MaskKind::kRanges ||
                          config.mask == MaskKind::kRangesWindow ||
                          config.mask == MaskKind::kRangesClamped;

  AttentionOp& settings = problem.settings;
  settings.scale = 1.0 / std::sqrt(static_cast<double>(config.head_size));
  // A quarter is exact: from -2 to 2 times the usual one.
  if (config.drawn_scale) settings.scale *= 0.25 * (draw_up_to(config, kBatch, kScale, 16) - 8);
  settings.logits_soft_cap = config.soft_cap ? kSoftCap : 0.0;
  settings.mask = mask_of(config);
  settings.bias.alibi_form = config.alibi;
  settings.kv.encoding = encoding_of(config.kv);
  settings.lse_includes_sink = config.lse_includes_sink;
  settings.exec = config.exec;

  for (std::int64_t r = 0; r < config.num_reqs; ++r) {
    const RequestLengths lengths = draw_lengths(config, r);
    LogicalRequest request = draw_request(config, r, lengths.query_len, lengths.seq_len);
    request.causal = draw_up_to(config, r, kCausal, 1) == 1;
    request.rswa_prefix_len = draw_up_to(config, r, kPrefixLen, config.reach);
    if (problem.has_mm_ranges) request.mm_ranges = draw_ranges(config, r, lengths.seq_len);
    problem.requests.push_back(std::move(request));
  }
  draw_scales(config, problem);
  draw_biases(config, problem);
  draw_sinks(config, problem);
  return problem;
}

}  // namespace attn::property_tests
