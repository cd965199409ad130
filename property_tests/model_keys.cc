// Scores and weights of one row's keys, and their sums.
#include <algorithm>
#include <cmath>

#include "attn/random.h"
#include "core/special_values.h"
#include "property_tests/model_row_solver.h"

namespace attn::property_tests {
namespace {

constexpr double kOne = 1.0;

// Tells rows and their parts apart.
std::uint64_t salt_of(const ModelPlace& place) {
  return static_cast<std::uint64_t>(place.token) << 16 ^ static_cast<std::uint64_t>(place.head);
}

}  // namespace

ModelRowSolver::ModelRowSolver(const SoftwareModel& model, const ModelRow& row)
    : model_(model),
      arithmetic_(model.arithmetic_),
      options_(model.options_),
      hooks_(*model.hooks_),
      row_(row),
      scalars_(arithmetic_, options_, salt_of(row.place)),
      has_sink_(row.sink && *row.sink != -kInf) {}

// q.k by the rules of `dot`, then the scale: its conversion to the vector type when that rounds,
// the product, and the rest of scale_roundings.
double ModelRowSolver::score(std::size_t i) {
  if (!row_.scores.empty()) return row_.scores[i];
  const double dot = model_.dot_.dot(row_.query.data(), row_.keys[i],
                                     static_cast<std::int64_t>(row_.query.size()));
  const int roundings = arithmetic_.scale_roundings;
  if (roundings == 0) return dot * row_.scale;
  const double held = scalars_.rounded(row_.scale);
  if (held == row_.scale || roundings == 1) {
    return scalars_.with_roundings(scalars_.rounded(dot * row_.scale), roundings - 1);
  }
  return scalars_.with_roundings(scalars_.rounded(dot * held), roundings - 2);
}

// Cap: division, tanh, product, and one rounding more (the cap as held). Each bias: its own error,
// one addition. Then logit_roundings and the storage.
double ModelRowSolver::logit(std::size_t i, double score) {
  double u = score;
  if (row_.cap > 0.0) {
    const double t = scalars_.tanh(scalars_.rounded(u / row_.cap));
    u = scalars_.with_roundings(scalars_.rounded(row_.cap * t), 1);
  }
  const auto num_biases = static_cast<std::size_t>(row_.num_biases);
  for (std::size_t b = 0; b < num_biases; ++b) {
    u = scalars_.rounded(u + scalars_.bias(row_.biases[i * num_biases + b]));
  }
  u = scalars_.with_roundings(u, arithmetic_.logit_roundings);
  return model_.logit_(hooks_.logit(row_.place, row_.positions[i], u));
}

// False when the row is NaN.
bool ModelRowSolver::find_scores() {
  for (std::size_t i = 0; i < row_.positions.size(); ++i) {
    const double u = logit(i, score(i));
    if (std::isnan(u) || u == kInf) return false;
    if (u == -kInf) continue;
    kept_.push_back(i);
    logits_.push_back(u);
  }
  return !row_.sink || !std::isnan(*row_.sink);
}

// Where parts begin in kept_, and its end. Parts are ranges of positions; none is empty. Merged
// through log-sum-exps a sink may be one of the parts.
std::vector<std::size_t> ModelRowSolver::part_starts(bool one) const {
  const std::int64_t room = arithmetic_.splits - (merges_lse() && has_sink_ ? 1 : 0);
  const std::int64_t parts = one ? 1 : std::min(options_.parts, room);
  const std::int64_t first = position_of(0);
  const std::int64_t span = position_of(kept_.size() - 1) - first + 1;
  std::vector<std::int64_t> cuts;
  for (std::int64_t p = 1; p < parts; ++p) {
    const std::uint64_t salt = salt_of(row_.place) * 1024 + static_cast<std::uint64_t>(p);
    const auto drawn = static_cast<std::int64_t>(derived_seed(options_.seed, salt) >> 33);
    cuts.push_back(first + (options_.even_parts ? p * span / parts : drawn % span));
  }
  std::sort(cuts.begin(), cuts.end());
  std::vector<std::size_t> starts = {0};
  for (const std::int64_t cut : cuts) {
    std::size_t at = starts.back();
    while (at < kept_.size() && position_of(at) < cut) ++at;
    if (at > starts.back() && at < kept_.size()) starts.push_back(at);
  }
  starts.push_back(kept_.size());
  return starts;
}

ModelState ModelRowSolver::part_of_keys(std::size_t first, std::size_t last, bool with_sink) {
  if (arithmetic_.p_normalized) return normalised_weights(first, last, with_sink);
  const bool steps = options_.tile > 0 && arithmetic_.tile > 0;
  return steps ? online(first, last, with_sink) : two_passes(first, last, with_sink);
}

// p_k enters the row sum as it is or as rounded for the sum with values.
void ModelRowSolver::add_key(std::size_t i, double weight, KeySums& sum, KeySums& values) {
  const std::int64_t position = position_of(i);
  const double p = model_.p_(scalars_.with_roundings(weight, arithmetic_.p_roundings));
  const double counted = arithmetic_.sum_rounded_p ? p : weight;
  sum.add(position, hooks_.sum_weight(row_.place, position, counted), {&kOne, 1});
  values.add(position, hooks_.value_weight(row_.place, position, p), value_of(i));
}

// The running maximum after a step: sums follow it by one exponential and one product each. It is
// let lag by at most max_lag.
double ModelRowSolver::grow(double max, double step_max, KeySums& sum, KeySums& values) {
  if (max == -kInf) return step_max;
  if (step_max <= max + options_.lag) return max;
  const double factor = scalars_.factor(max, step_max);
  sum.rescale(hooks_.rescale_sum(row_.place, factor), scalars_.vector());
  values.rescale(hooks_.rescale_values(row_.place, factor), scalars_.vector());
  return step_max;
}

// Online softmax. A step covers the keys of one cell of a grid of positions whose cells are not
// smaller than `tile`: at most ceil(span / tile) + 1 steps.
ModelState ModelRowSolver::online(std::size_t first, std::size_t last, bool with_sink) {
  KeySums sum(model_.sum_, 1);
  KeySums values(model_.pv_, row_.head_size_v);
  double max = with_sink ? *row_.sink : -kInf;
  if (with_sink) sum.start_with(1.0);
  const auto step_of = [&](std::size_t i) {
    return (position_of(i) + options_.grid_shift) / options_.tile;
  };
  for (std::size_t begin = first; begin < last;) {
    std::size_t end = begin;
    double step_max = -kInf;
    for (; end < last && step_of(end) == step_of(begin); ++end) {
      step_max = std::max(step_max, logits_[end]);
    }
    max = grow(max, step_max, sum, values);
    const bool back = options_.key_order == SumOrder::kBackward;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t at = back ? end - 1 - (i - begin) : i;
      add_key(at, scalars_.weight(logits_[at], max), sum, values);
    }
    begin = end;
  }
  const double total = sum.finish()[0];
  return {max, total, total, values.finish()};
}

// The maximum first: nothing is rescaled.
ModelState ModelRowSolver::two_passes(std::size_t first, std::size_t last, bool with_sink) {
  KeySums sum(model_.sum_, 1);
  KeySums values(model_.pv_, row_.head_size_v);
  double max = with_sink ? *row_.sink : -kInf;
  for (std::size_t i = first; i < last; ++i) max = std::max(max, logits_[i]);
  if (with_sink) sum.start_with(scalars_.factor(*row_.sink, max));
  for (std::size_t i = first; i < last; ++i) {
    add_key(i, scalars_.weight(logits_[i], max), sum, values);
  }
  const double total = sum.finish()[0];
  return {max, total, total, values.finish()};
}

// Two passes, the whole row sum before the first product: each weight is divided by it, with
// normalize_roundings. The sink is the last term of that sum.
ModelState ModelRowSolver::normalised_weights(std::size_t first, std::size_t last, bool with_sink) {
  KeySums sum(model_.sum_, 1);
  KeySums values(model_.pv_, row_.head_size_v);
  ModelState state;
  if (with_sink) state.max = *row_.sink;
  for (std::size_t i = first; i < last; ++i) state.max = std::max(state.max, logits_[i]);
  std::vector<double> weights;
  for (std::size_t i = first; i < last; ++i) {
    weights.push_back(scalars_.weight(logits_[i], state.max));
    const std::int64_t position = position_of(i);
    sum.add(position, hooks_.sum_weight(row_.place, position, weights.back()), {&kOne, 1});
  }
  state.keys_sum = sum.finish()[0];
  state.sum = state.keys_sum;
  if (with_sink) {
    state.sum = scalars_.rounded(state.keys_sum + scalars_.factor(*row_.sink, state.max));
  }
  const double total = hooks_.row_sum(row_.place, state.sum);
  for (std::size_t i = first; i < last; ++i) {
    const std::int64_t position = position_of(i);
    const double share = scalars_.quotient(weights[i - first], total);
    const double p = model_.p_(scalars_.with_roundings(share, arithmetic_.p_roundings));
    values.add(position, hooks_.value_weight(row_.place, position, p), value_of(i));
  }
  state.values = values.finish();
  return state;
}

}  // namespace attn::property_tests
