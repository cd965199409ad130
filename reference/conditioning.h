// Conditioning sums of one row: how far rounding can move its answer. Formulas and rounding:
// attn/conditioning.h.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "attn/conditioning.h"
#include "reference/softmax.h"
#include "reference/store.h"

namespace attn::reference {

// Magnitudes of keys or values; of each row of them, what every query asks again.
struct Magnitudes {
  RowMatrix elements;           // [rows, size]
  Eigen::ArrayXd sum, largest;  // [rows]
};
Magnitudes with_row_sizes(RowMatrix elements);

// One row and its visible keys; rows of the matrices are numbered as in keys.value_row.
struct ConditionedRow {
  const ScoredKeys& keys;
  std::span<const double> bias_sizes;    // sum of |bias terms| of each of `keys`; empty: no biases
  std::span<const std::int64_t> places;  // where each row of the matrices lies in its sequence
  const RowMatrix& query;                // [1, head_size]
  const Magnitudes& keys_sizes;          // [rows, head_size], of the factors of the scores
  const Magnitudes& values_sizes;        // [rows, head_size_v]
  double scale = 1.0;
  std::optional<double> sink;
};

// Sums in double times 1 + this are not below those of the same scores without rounding, at any
// length that fits into memory. What the scores' own rounding moves is of second order in a bound.
inline constexpr double kSumSlack = 0x1p-20;

// Of the scores as given: not below the true sums (mass: not above), and by at most 2^-19 of them
// away.
struct RowSums {
  Eigen::ArrayXd pv, pav, puv, v;  // [head_size_v]
  std::array<double, kNumRowFields> row{};
};

// `state` is the answer of the row.
RowSums row_sums(const ConditionedRow& row, const State& state);

// The smallest float32 that is not below `x` >= 0; +inf for NaN (0 * inf has no bound).
float rounded_up(double x);

inline bool wants_sums(const Outputs& outputs) {
  return outputs.cond_pv.present() || outputs.cond_pav.present() || outputs.cond_puv.present() ||
         outputs.cond_v.present() || outputs.cond_row.present();
}

// Writes the sums that are asked for at one row: [row..., head_size_v], [row..., kNumRowFields].
template <class... Row>
void store_sums(const Outputs& outputs, const RowSums& sums, Row... row) {
  const auto store_all = [&](const MutableTensorView& view, const Eigen::ArrayXd& values) {
    if (!view.present()) return;
    for (Eigen::Index j = 0; j < values.size(); ++j) store(view, rounded_up(values[j]), row..., j);
  };
  store_all(outputs.cond_pv, sums.pv);
  store_all(outputs.cond_pav, sums.pav);
  store_all(outputs.cond_puv, sums.puv);
  store_all(outputs.cond_v, sums.v);
  if (!outputs.cond_row.present()) return;
  for (int f = 0; f < kNumRowFields; ++f) {
    store(outputs.cond_row, sums.row[static_cast<std::size_t>(f)], row..., f);
  }
}

}  // namespace attn::reference
