// One row through the software model: scores, parts of the keys, their merge.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "property_tests/model_scalars.h"
#include "property_tests/software_model.h"

namespace attn::property_tests {

// What a set of keys says about a row. `sum` and `values` are relative to e^max. After normalise(),
// and when merged through log-sum-exps, `values` are normalised and `max` is the log-sum-exp.
struct ModelState {
  double max = -std::numeric_limits<double>::infinity();
  double sum = 0.0;
  double keys_sum = 0.0;  // without the sink
  std::vector<double> values;
};

class ModelRowSolver {
 public:
  ModelRowSolver(const SoftwareModel& model, const ModelRow& row);

  double solve(std::span<double> out, bool stored);

 private:
  bool merges_lse() const {
    return arithmetic_.splits > 1 && arithmetic_.merge_kind == MergeKind::kLse;
  }
  SinkPlace sink_place() const;
  std::int64_t position_of(std::size_t i) const { return row_.positions[kept_[i]]; }
  std::span<const double> value_of(std::size_t i) const {
    return {row_.values[kept_[i]], static_cast<std::size_t>(row_.head_size_v)};
  }

  // Scores (model_keys.cc).
  bool find_scores();
  double score(std::size_t i);
  double logit(std::size_t i, double score);

  // States of kept_[first, last); with the sink as one more term of the row sum.
  std::vector<std::size_t> part_starts(bool one) const;
  ModelState part_of_keys(std::size_t first, std::size_t last, bool with_sink);
  ModelState online(std::size_t first, std::size_t last, bool with_sink);
  ModelState two_passes(std::size_t first, std::size_t last, bool with_sink);
  ModelState normalised_weights(std::size_t first, std::size_t last, bool with_sink);
  double grow(double max, double step_max, KeySums& sum, KeySums& values);
  void add_key(std::size_t i, double weight, KeySums& sum, KeySums& values);

  // From parts to the answer (model_merge.cc). The doubles are log-sum-exps.
  double solve_keys(std::vector<double>& values);
  double merge_of_lse(std::vector<ModelState> parts, bool sink, std::vector<double>& values);
  double merge_of_given_parts(std::vector<double>& values);
  ModelState merged(std::vector<ModelState> parts);
  ModelState merged_once(std::span<const ModelState> parts);
  void normalise(ModelState& state);
  void store_part(ModelState& part);
  void add_sink(ModelState& state);
  std::vector<double> through_projection(const std::vector<double>& values) const;

  const SoftwareModel& model_;
  const Arithmetic& arithmetic_;
  const ModelOptions& options_;
  const ModelHooks& hooks_;
  const ModelRow& row_;
  ModelScalars scalars_;
  std::vector<std::size_t> kept_;  // keys whose logit is above -inf
  std::vector<double> logits_;     // of kept_
  bool has_sink_ = false;
};

}  // namespace attn::property_tests
