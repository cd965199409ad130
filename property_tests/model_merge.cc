// Parts of one row, merged and normalised.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/special_values.h"
#include "property_tests/model_row_solver.h"

namespace attn::property_tests {
// A sink can be left out of the log-sum-exp only where it comes after the keys.
SinkPlace ModelRowSolver::sink_place() const {
  const bool after = !row_.lse_includes_sink && options_.sink == SinkPlace::kStart;
  return after ? SinkPlace::kEnd : options_.sink;
}

// To (values, log-sum-exp).
void ModelRowSolver::normalise(ModelState& state) {
  if (!arithmetic_.p_normalized) {
    const double total = hooks_.row_sum(row_.place, state.sum);
    for (double& x : state.values) x = scalars_.quotient(x, total);
  }
  state.max = scalars_.log_sum_exp(state.max, state.sum);
}

void ModelRowSolver::store_part(ModelState& part) {
  for (double& x : part.values) x = model_.part_(x);
  if (merges_lse()) part.max = model_.merge_lse_(part.max);
}

// Each part is multiplied by one exponential and added: one level of merge.depth. Of log-sum-exps
// the result is normalised again.
ModelState ModelRowSolver::merged_once(std::span<const ModelState> parts) {
  const bool of_lse = merges_lse();
  ModelState to;
  for (const ModelState& part : parts) to.max = std::max(to.max, part.max);
  to.values.assign(parts[0].values.size(), 0.0);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const ModelState& part = parts[p];
    const double exact_factor =
        of_lse ? scalars_.merge_factor(part.max, to.max) : scalars_.factor(part.max, to.max);
    const double factor =
        hooks_.merge_weight(row_.place, static_cast<std::int64_t>(p), exact_factor);
    to.sum = scalars_.rounded(to.sum + (of_lse ? factor : scalars_.rounded(part.sum * factor)));
    for (std::size_t j = 0; j < to.values.size(); ++j) {
      to.values[j] = scalars_.rounded(to.values[j] + scalars_.rounded(part.values[j] * factor));
    }
  }
  to.keys_sum = to.sum;
  if (of_lse) {
    for (double& x : to.values) x = scalars_.quotient(x, to.sum);
    to.max = scalars_.log_sum_exp(to.max, to.sum);
  }
  return to;
}

// Flat, one after the other, or as a tree: what merge.depth allows. What is merged again is stored
// in between.
ModelState ModelRowSolver::merged(std::vector<ModelState> parts) {
  if (parts.size() == 1) return std::move(parts[0]);
  const auto count = static_cast<double>(parts.size());
  const auto depth = static_cast<double>(arithmetic_.merge_depth);
  const bool fold = options_.merge == MergeOrder::kFold && count - 1.0 <= depth;
  const bool tree = options_.merge == MergeOrder::kTree && std::ceil(std::log2(count)) <= depth;
  if (!fold && !tree) return merged_once(parts);
  while (parts.size() > 1) {
    const std::size_t pairs = fold ? 1 : parts.size() / 2;
    std::vector<ModelState> next;
    for (std::size_t i = 0; i < pairs; ++i) {
      next.push_back(merged_once({&parts[2 * i], 2}));
      if (parts.size() > 2) store_part(next.back());
    }
    std::move(parts.begin() + static_cast<std::ptrdiff_t>(2 * pairs), parts.end(),
              std::back_inserter(next));
    parts = std::move(next);
  }
  return std::move(parts[0]);
}

// After the keys: the maximum counts the sink, or stays that of the keys where e^(sink - max) is
// far from overflow.
void ModelRowSolver::add_sink(ModelState& state) {
  const double sink = *row_.sink;
  const double most = std::log(largest_finite(arithmetic_.vector)) / 2.0;
  if (sink > state.max && (sink_place() != SinkPlace::kEndKeys || sink - state.max > most)) {
    const double factor = scalars_.factor(state.max, sink);
    state.sum = scalars_.rounded(state.sum * factor);
    for (double& x : state.values) x = scalars_.rounded(x * factor);
    state.max = sink;
  }
  state.sum = scalars_.rounded(state.sum + scalars_.factor(sink, state.max));
}

// Weights divided by the row sum leave nothing to rescale: they come in one part, which knows the
// sink.
double ModelRowSolver::solve_keys(std::vector<double>& values) {
  if (!row_.scores.empty() && options_.parts > 1) return merge_of_given_parts(values);
  const bool one = !merges_lse() && arithmetic_.p_normalized;
  const bool in_first = has_sink_ && (sink_place() == SinkPlace::kStart || one);
  const std::vector<std::size_t> starts = part_starts(one);
  std::vector<ModelState> parts;
  for (std::size_t p = 0; p + 1 < starts.size(); ++p) {
    parts.push_back(part_of_keys(starts[p], starts[p + 1], in_first && p == 0));
  }
  if (merges_lse()) return merge_of_lse(std::move(parts), has_sink_ && !in_first, values);
  if (parts.size() > 1) {
    for (ModelState& part : parts) store_part(part);
  }
  ModelState state = merged(std::move(parts));
  double lse = kNaN;
  if (!row_.lse_includes_sink) lse = scalars_.log_sum_exp(state.max, state.keys_sum);
  if (has_sink_ && !in_first) add_sink(state);
  normalise(state);
  values = std::move(state.values);
  return row_.lse_includes_sink ? state.max : lse;
}

// The sink is one more part, which has no values. Keys alone are merged first where their
// log-sum-exp is asked for.
double ModelRowSolver::merge_of_lse(std::vector<ModelState> parts, bool sink,
                                    std::vector<double>& values) {
  for (ModelState& part : parts) {
    normalise(part);
    if (sink || parts.size() > 1) store_part(part);
  }
  const double keys_lse = row_.lse_includes_sink ? kNaN : merged(parts).max;
  if (sink) {
    ModelState last;
    last.max = model_.merge_lse_(*row_.sink);
    last.values.assign(static_cast<std::size_t>(row_.head_size_v), 0.0);
    parts.push_back(std::move(last));
  }
  ModelState state = merged(std::move(parts));
  values = std::move(state.values);
  return row_.lse_includes_sink ? state.max : keys_lse;
}

// Keys that are partial states themselves.
double ModelRowSolver::merge_of_given_parts(std::vector<double>& values) {
  std::vector<ModelState> parts;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    ModelState part;
    part.max = logits_[i];
    part.values.assign(value_of(i).begin(), value_of(i).end());
    parts.push_back(std::move(part));
  }
  ModelState state = merged(std::move(parts));
  values = std::move(state.values);
  return state.max;
}

// The normalised output times the projection, both stored as the contract says of projections.
std::vector<double> ModelRowSolver::through_projection(const std::vector<double>& values) const {
  std::vector<double> held;
  for (const double x : values) held.push_back(model_.project_round_(x));
  std::vector<double> column(held.size());
  std::vector<double> to;
  for (std::int64_t j = 0; j < row_.out_size; ++j) {
    for (std::size_t l = 0; l < held.size(); ++l) {
      column[l] = row_.out_projection[static_cast<std::int64_t>(l) * row_.out_size + j];
    }
    const double sum =
        model_.project_.dot(held.data(), column.data(), static_cast<std::int64_t>(held.size()));
    to.push_back(model_.project_round_(sum));
  }
  return to;
}

double ModelRowSolver::solve(std::span<double> out, bool stored) {
  std::fill(out.begin(), out.end(), 0.0);
  double lse = has_sink_ && row_.lse_includes_sink ? *row_.sink : -kInf;
  // A sink of +inf takes all the weight; keys alone still have a log-sum-exp.
  const bool all_sink = has_sink_ && *row_.sink == kInf;
  if (!find_scores()) {
    std::fill(out.begin(), out.end(), kNaN);
    lse = kNaN;
  } else if (!kept_.empty() && !(all_sink && row_.lse_includes_sink)) {
    if (all_sink) has_sink_ = false;
    std::vector<double> values;
    lse = solve_keys(values);
    if (row_.out_projection != nullptr) values = through_projection(values);
    if (!all_sink) std::copy(values.begin(), values.end(), out.begin());
  }
  for (std::size_t j = 0; j < out.size(); ++j) {
    out[j] = hooks_.out(row_.place, static_cast<std::int64_t>(j), out[j]);
    if (stored) out[j] = model_.out_(out[j]);
  }
  lse = hooks_.lse(row_.place, lse);
  return stored ? model_.lse_(lse) : lse;
}

}  // namespace attn::property_tests
