#include "optimized/cpu/softmax_state.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace attn::cpu {
namespace {

constexpr float kFloatMinusInf = -std::numeric_limits<float>::infinity();
constexpr float kFloatNaN = std::numeric_limits<float>::quiet_NaN();
// Stands for a weight that underflowed to 0 where it meets an infinite or NaN value: 0 * inf would
// turn an infinite answer into NaN.
constexpr float kTinyWeight = std::numeric_limits<float>::min();

// Weight e^x of something that exists, x <= 0: never 0.
float factor(float x) { return std::max(std::exp(x), kTinyWeight); }

// NaN when a score is NaN or +inf, else the largest. (A maximum alone would lose a NaN.)
float checked_max(const float* scores) {
  float largest = kFloatMinusInf;
  bool bad = false;
  for (int j = 0; j < kTileKeys; ++j) {
    bad |= !(scores[j] < std::numeric_limits<float>::infinity());
    largest = scores[j] > largest ? scores[j] : largest;
  }
  return bad ? kFloatNaN : largest;
}

float sum_of_weights(const float* weights) {
  float lanes[kSumLanes] = {};
  for (std::int64_t j = 0; j < kTileKeys; j += kSumLanes) {
    for (std::int64_t lane = 0; lane < kSumLanes; ++lane) lanes[lane] += weights[j + lane];
  }
  for (std::int64_t width = kSumLanes / 2; width > 0; width /= 2) {
    for (std::int64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

// The keys P.V takes: visible ones only, so that nothing a masked row holds can enter, and of those
// the ones that weigh something. An infinite or NaN value row always does.
std::uint64_t weighty(std::uint64_t keys, std::uint64_t infinite_or_nan, float* weights) {
  std::uint64_t zero = 0;
  for (int j = 0; j < kTileKeys; ++j) {
    zero |= static_cast<std::uint64_t>(weights[j] == 0.0f) << j;
  }
  for (std::uint64_t left = keys & zero & infinite_or_nan; left != 0; left &= left - 1) {
    weights[std::countr_zero(left)] = kTinyWeight;
  }
  return keys & (~zero | infinite_or_nan);
}

void scale_and_add(float* acc, float acc_factor, const float* add, float add_factor,
                   std::int64_t n) {
  for (std::int64_t d = 0; d < n; ++d) acc[d] = acc[d] * acc_factor + add[d] * add_factor;
}

}  // namespace

void clear(const SoftmaxStates& states, std::int64_t rows) {
  std::fill_n(states.max, rows, kFloatMinusInf);
  std::fill_n(states.sum, rows, 0.0f);
  std::fill_n(states.acc, rows * states.stride, 0.0f);
}

void add_tile(const SoftmaxStates& states, std::int64_t row, std::uint64_t keys, float* scores,
              const KvTile& tile, float* tile_acc) {
  float& max = states.max[row];
  if (std::isnan(max)) return;
  const float tile_max = checked_max(scores);
  if (std::isnan(tile_max)) {
    max = kFloatNaN;
    return;
  }
  const float old_max = max;
  max = std::max(old_max, tile_max);
  for (int j = 0; j < kTileKeys; ++j) scores[j] = std::exp(scores[j] - max);
  const float tile_sum = sum_of_weights(scores);
  const std::uint64_t taken = weighty(keys, tile.infinite_or_nan, scores);
  weigh_values(scores, taken, tile.values, states.stride, tile_acc);
  float* acc = states.acc_row(row);
  if (old_max == kFloatMinusInf) {
    states.sum[row] = tile_sum;
    std::copy_n(tile_acc, states.stride, acc);
    return;
  }
  const float keep = factor(old_max - max);
  states.sum[row] = states.sum[row] * keep + tile_sum;
  scale_and_add(acc, keep, tile_acc, 1.0f, states.stride);
}

void merge(const SoftmaxStates& total, const SoftmaxStates& part, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float part_max = part.max[row];
    float& max = total.max[row];
    if (part_max == kFloatMinusInf || std::isnan(max)) continue;
    if (std::isnan(part_max)) {
      max = kFloatNaN;
      continue;
    }
    const float old_max = max;
    max = std::max(old_max, part_max);
    const float part_factor = factor(part_max - max);
    // A total that saw nothing is all zeros, not a term of weight e^-inf.
    const float total_factor = old_max == kFloatMinusInf ? 1.0f : factor(old_max - max);
    total.sum[row] = total.sum[row] * total_factor + part.sum[row] * part_factor;
    scale_and_add(total.acc_row(row), total_factor, part.acc_row(row), part_factor, total.stride);
  }
}

}  // namespace attn::cpu
