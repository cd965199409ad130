#include "reference/softmax.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#ifdef __FAST_MATH__
#error "the reference needs IEEE arithmetic: do not compile it with -ffast-math"
#endif

namespace attn::reference {
namespace {

using Lanes = Eigen::Array<double, kLanes, 1>;

constexpr std::size_t kBlock = 64;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

State nan_state(Eigen::Index head_size_v) {
  return {Eigen::VectorXd::Constant(head_size_v, kNaN), kNaN};
}
State empty_state(Eigen::Index head_size_v) { return {Eigen::VectorXd::Zero(head_size_v), -kInf}; }

// NaN, or +inf: infinity over infinity. (-inf is not among the scores: it masks.)
bool any_not_finite(std::span<const double> scores) {
  return std::any_of(scores.begin(), scores.end(), [](double u) { return !std::isfinite(u); });
}

double sum_in_blocks(std::span<const double> values) {
  double total = 0.0;
  for (std::size_t first = 0; first < values.size(); first += kBlock) {
    const auto block = values.subspan(first, std::min(kBlock, values.size() - first));
    total += std::accumulate(block.begin(), block.end(), 0.0);
  }
  return total;
}

Eigen::VectorXd weighted_sum_in_blocks(std::span<const double> weights,
                                       std::span<const Eigen::Index> value_row,
                                       const RowMatrix& values, Eigen::Index head_size_v) {
  Eigen::VectorXd total = Eigen::VectorXd::Zero(values.cols());
  for (std::size_t first = 0; first < weights.size(); first += kBlock) {
    const std::size_t end = std::min(first + kBlock, weights.size());
    for (Eigen::Index d = 0; d < values.cols(); d += kLanes) {
      Lanes block = Lanes::Zero();
      for (std::size_t j = first; j < end; ++j) {
        block += weights[j] * Eigen::Map<const Lanes>(values.row(value_row[j]).data() + d);
      }
      total.segment<kLanes>(d) += block.matrix();
    }
  }
  return total.head(head_size_v);
}

// e^x of something that exists is never 0, however small: an infinite value under it stays
// infinite.
double weight(double x) { return std::max(std::exp(x), std::numeric_limits<double>::denorm_min()); }

std::vector<double> weights_of(std::span<const double> scores, double shift) {
  std::vector<double> weights(scores.size());
  std::transform(scores.begin(), scores.end(), weights.begin(),
                 [shift](double u) { return weight(u - shift); });
  return weights;
}

double log_sum_exp(std::span<const double> scores) {
  if (scores.empty()) return -kInf;
  const double shift = *std::max_element(scores.begin(), scores.end());
  return shift + std::log(sum_in_blocks(weights_of(scores, shift)));
}

}  // namespace

double dot(const double* a, const double* b, Eigen::Index length) {
  Lanes sum = Lanes::Zero();
  for (Eigen::Index d = 0; d < length; d += kLanes) {
    sum += Eigen::Map<const Lanes>(a + d) * Eigen::Map<const Lanes>(b + d);
  }
  const Eigen::Array4d half = sum.head<4>() + sum.tail<4>();
  return (half[0] + half[2]) + (half[1] + half[3]);
}

State attend(const ScoredKeys& keys, const RowMatrix& values, Eigen::Index head_size_v,
             std::optional<double> sink, bool lse_includes_sink) {
  const double sink_score = sink.value_or(-kInf);
  if (any_not_finite(keys.score) || std::isnan(sink_score)) return nan_state(head_size_v);
  if (keys.score.empty() || sink_score == kInf) {
    State state = empty_state(head_size_v);
    state.lse = lse_includes_sink ? sink_score : log_sum_exp(keys.score);
    return state;
  }
  const double shift =
      std::max(sink_score, *std::max_element(keys.score.begin(), keys.score.end()));
  const std::vector<double> weights = weights_of(keys.score, shift);
  const double denominator = sum_in_blocks(weights) + std::exp(sink_score - shift);
  State state;
  state.out = weighted_sum_in_blocks(weights, keys.value_row, values, head_size_v) / denominator;
  state.lse = lse_includes_sink ? shift + std::log(denominator) : log_sum_exp(keys.score);
  return state;
}

State merge(const State& a, const State& b) {
  if (a.lse == -kInf) return b;
  if (b.lse == -kInf) return a;
  const double shift = std::max(a.lse, b.lse);
  const double weight_a = weight(a.lse - shift);
  const double weight_b = weight(b.lse - shift);
  const double denominator = weight_a + weight_b;
  return {(weight_a * a.out + weight_b * b.out) / denominator, shift + std::log(denominator)};
}

State add_sink(const State& keys, double sink, bool lse_includes_sink) {
  const Eigen::Index size = keys.out.size();
  if (std::isnan(keys.lse) || std::isnan(sink)) return nan_state(size);
  State both = empty_state(size);
  if (sink == kInf) {
    both.lse = kInf;
  } else {
    both = merge(keys, {Eigen::VectorXd::Zero(size), sink});
  }
  if (!lse_includes_sink) both.lse = keys.lse;
  return both;
}

}  // namespace attn::reference
