#include "golden/questions/draw_scores.h"

#include <algorithm>
#include <utility>

#include "core/special_values.h"

namespace attn::questions {
namespace {

struct Longest {
  std::int64_t query_len = 0;
  std::int64_t seq_len = 0;
};

Longest longest(const AttentionSetup& setup) {
  Longest most;
  for (const RequestSetup& request : setup.requests) {
    most.query_len = std::max(most.query_len, request.query_len);
    most.seq_len = std::max(most.seq_len, request.seq_len);
  }
  return most;
}

std::vector<std::int64_t> score_shape(const AttentionSetup& setup, const ScoreAxes& axes) {
  const Longest most = longest(setup);
  return {axes.per_request ? static_cast<std::int64_t>(setup.requests.size()) : 1,
          axes.per_head ? setup.num_heads : 1, axes.per_row ? most.query_len : 1,
          axes.per_key ? most.seq_len + axes.unused_columns : 1};
}

// index: request, head, row, key. random.md draws it at (request, key, head, row).
Place score_place(const std::vector<std::int64_t>& index) {
  return {index[0], index[3], index[1], index[2]};
}

TensorView draw_attn_mask(const AttentionSetup& setup, TensorStore& memory) {
  if (!setup.mask.attn_mask) return {};
  const MaskTensor& mask = *setup.mask.attn_mask;
  const std::int64_t num_keys = longest(setup).seq_len;
  return memory.keep(drawn(DType::kBool, score_shape(setup, mask.axes), [&](const auto& index) {
    if (mask.axes.per_key && index[3] >= num_keys) return 0.0;
    const bool visible =
        mask.given
            ? mask.given(index[0], index[1], index[2], index[3])
            : random_mask_bit(words_at(setup.source, RandomTensor::kAttnMask, score_place(index)));
    return visible ? 1.0 : 0.0;
  }));
}

TensorView draw_attn_bias(const AttentionSetup& setup, TensorStore& memory) {
  if (!setup.attn_bias) return {};
  const BiasTensor& bias = *setup.attn_bias;
  const std::int64_t num_keys = longest(setup).seq_len;
  return memory.keep(drawn(bias.dtype, score_shape(setup, bias.axes), [&](const auto& index) {
    if (bias.axes.per_key && index[3] >= num_keys) return kNaN;
    const Place at = score_place(index);
    if (bias.hides && !random_mask_bit(words_at(setup.source, RandomTensor::kAttnMask, at))) {
      return -kInf;
    }
    return bell(words_at(setup.source, RandomTensor::kAttnBias, at));
  }));
}

// Row i sees node i and its ancestors, the others not.
TensorView draw_tree(const AttentionSetup& setup, TensorStore& memory) {
  const std::vector<int>& parents = setup.tree.parents;
  if (parents.empty()) return {};
  const auto n = static_cast<std::int64_t>(parents.size());
  HostTensor bias(DType::kF32, {n, n}, std::vector<double>(parents.size() * parents.size(), -kInf));
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t node = row; node >= 0; node = parents[static_cast<std::size_t>(node)]) {
      const Place at = {.position = node, .dim = row};
      bias.set(
          setup.tree.finite_bias ? bell(words_at(setup.source, RandomTensor::kQqBias, at)) : 0.0,
          row, node);
    }
  }
  return memory.keep(std::move(bias));
}

TensorView mm_ranges(const MaskSetup& mask, TensorStore& memory) {
  if (mask.mm_ranges.empty()) return {};
  std::size_t most = 0;
  for (const auto& ranges : mask.mm_ranges) most = std::max(most, ranges.size());
  HostTensor tensor(DType::kI32, {static_cast<std::int64_t>(mask.mm_ranges.size()),
                                  static_cast<std::int64_t>(most), 2});
  for (std::size_t r = 0; r < mask.mm_ranges.size(); ++r) {
    for (std::size_t i = 0; i < mask.mm_ranges[r].size(); ++i) {
      tensor.set(mask.mm_ranges[r][i].first, r, i, 0);
      tensor.set(mask.mm_ranges[r][i].second, r, i, 1);
    }
  }
  return memory.keep(std::move(tensor));
}

}  // namespace

MaskSpec draw_mask(const AttentionSetup& setup, TensorStore& memory) {
  const MaskSetup& wanted = setup.mask;
  MaskSpec mask;
  mask.causal = wanted.causal;
  mask.window_left = wanted.window_left;
  mask.window_right = wanted.window_right;
  mask.sink_token_length = wanted.sink_token_length;
  mask.attention_chunk_size = wanted.chunk_size;
  mask.attention_chunk_lookback = wanted.chunk_lookback;
  mask.rswa_window = wanted.rswa_window;
  if (wanted.rswa_window > 0) {
    mask.rswa_prefix_lens = memory.keep(int_tensor(wanted.rswa_prefix_lens));
  }
  if (!wanted.causal_per_req.empty()) {
    mask.causal_per_req = memory.keep(HostTensor(
        DType::kBool, {static_cast<std::int64_t>(wanted.causal_per_req.size())},
        std::vector<double>(wanted.causal_per_req.begin(), wanted.causal_per_req.end())));
  }
  mask.mm_prefix_ranges = mm_ranges(wanted, memory);
  mask.mm_prefix_clamp = wanted.mm_clamp;
  mask.attn_mask = draw_attn_mask(setup, memory);
  return mask;
}

BiasSpec draw_bias(const AttentionSetup& setup, TensorStore& memory) {
  BiasSpec bias;
  bias.alibi_form = setup.alibi;
  if (setup.alibi != AlibiForm::kNone) {
    const std::vector<float> slopes = alibi_slopes(setup.num_heads);
    bias.alibi_slopes = memory.keep(HostTensor(DType::kF32, {setup.num_heads},
                                               std::vector<double>(slopes.begin(), slopes.end())));
  }
  bias.attn_bias = draw_attn_bias(setup, memory);
  bias.qq_bias = draw_tree(setup, memory);
  return bias;
}

TensorView draw_sinks(const AttentionSetup& setup, TensorStore& memory) {
  if (!setup.sinks.empty()) {
    return memory.keep(HostTensor(setup.sinks_dtype, {setup.num_heads}, setup.sinks));
  }
  if (!setup.drawn_sinks) return {};
  return memory.keep(drawn(setup.sinks_dtype, {setup.num_heads}, [&](const auto& index) {
    return 2.0 * bell(words_at(setup.source, RandomTensor::kSinks, {.head = index[0]}));
  }));
}

}  // namespace attn::questions
