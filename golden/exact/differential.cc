#include "golden/exact/differential.h"

#include <optional>
#include <utility>

#include "golden/exact/attention.h"
#include "golden/exact/gather.h"
#include "golden/exact/rounding.h"
#include "golden/exact/store_state.h"

namespace attn::exact {
namespace {

// Softmax `which` (0 or 1) of query pair `pair`, over the values of both heads of its KV pair.
RowState state_of_softmax(const AttentionOp& op, const RowPlace& row, std::int64_t pair, int which,
                          int bits) {
  const std::int64_t kv_pair = pair / op.num_queries_per_kv();
  ScoredRow scored = score_row(op, row, {2 * pair + which, 2 * kv_pair + which}, bits);
  std::vector<std::int64_t> positions;
  positions.reserve(scored.keys.size());
  for (const ScoredKey& key : scored.keys) positions.push_back(key.place);
  const auto read_both = [&](std::size_t i) {
    Elements both = read_value(op.kv, row.request, positions[i], 2 * kv_pair, bits);
    const Elements second = read_value(op.kv, row.request, positions[i], 2 * kv_pair + 1, bits);
    both.value.insert(both.value.end(), second.value.begin(), second.value.end());
    both.size.insert(both.size.end(), second.size.begin(), second.size.end());
    return both;
  };
  return state_of_row(std::move(scored.keys), std::nullopt, scored.query, 2 * op.head_size_v(),
                      read_both, bits);
}

// y = y0 - lambda * y1, settled, so that what cancels is 0 before it is divided by the mean square.
Elements difference(const DifferentialOp& op, const RowState& first, const RowState& second,
                    int bits) {
  const Real lambda(bits, op.lambda);
  Elements y;
  for (std::size_t j = 0; j < first.out.value.size(); ++j) {
    Real size = first.out.size[j] + abs(lambda) * second.out.size[j];
    Real value = settled(first.out.value[j] - lambda * second.out.value[j], size);
    y.push(std::move(value), std::move(size));
  }
  return y;
}

// (1 - lambda_init) * w * y / sqrt(mean y^2 + eps); without weights (1 - lambda_init) * y.
Elements normalised(const DifferentialOp& op, const Elements& y, int bits) {
  const Real factor = Real(bits, 1.0) - Real(bits, op.lambda_init);
  Elements z;
  if (!op.norm_weight.present()) {
    for (std::size_t j = 0; j < y.value.size(); ++j) {
      z.push(factor * y.value[j], abs(factor) * y.size[j]);
    }
    return z;
  }
  Real mean_square = dot(y.value, y.value, bits);
  mean_square /= Real(bits, static_cast<double>(y.value.size()));
  const Real root = sqrt(mean_square + Real(bits, op.eps));
  const Real largest = largest_of(y.size, bits);  // all of y is in every element, through the root
  for (std::size_t j = 0; j < y.value.size(); ++j) {
    const Real w = factor * Real(bits, value_at(op.norm_weight, static_cast<std::int64_t>(j)));
    Real size = y.size[j].is_zero() ? y.size[j] : abs(w) * largest / root;
    z.push(w * y.value[j] / root, std::move(size));
  }
  return z;
}

}  // namespace

int answer(const DifferentialOp& op, const Outputs& outputs) {
  const AttentionOp& attention = op.attention;
  const std::int64_t num_pairs = attention.num_heads() / 2;
  return answer_rows(attention.num_tokens() * num_pairs, [&](std::int64_t i, int bits) {
    const RowPlace row = place_of(attention.query_start_loc, attention.seq_lens, i / num_pairs);
    const std::int64_t pair = i % num_pairs;
    const RowState states[2] = {state_of_softmax(attention, row, pair, 0, bits),
                                state_of_softmax(attention, row, pair, 1, bits)};
    const Elements z = normalised(op, difference(op, states[0], states[1], bits), bits);
    RoundedRow rounded;
    for (std::size_t j = 0; j < z.value.size(); ++j) {
      const auto element = static_cast<std::int64_t>(j);
      rounded.nearest("out", outputs.out, {row.token, pair, element}, z.value[j], z.size[j]);
      for (const int which : {0, 1}) {
        const Elements& y = states[which].out;
        rounded.nearest("cond_o", outputs.cond_o, {which, row.token, pair, element}, y.value[j],
                        y.size[j]);
      }
    }
    for (const int which : {0, 1}) {
      store_sums_of_pair(rounded, outputs, which, row.token, pair, states[which]);
    }
    return rounded;
  });
}

}  // namespace attn::exact
