#include "reference/conditioning.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace attn::reference {
namespace {

constexpr double kSmallest = std::numeric_limits<double>::denorm_min();

// Not below the true product, but for relative roundings: below the least normal number those are
// absolute, so the last place is added. A product of numbers that are not 0 is not 0.
double product(double a, double b) { return a == 0.0 || b == 0.0 ? 0.0 : a * b + kSmallest; }

// The same of a quotient of e^-d: rounded twice.
double not_below(double rounded_p) { return rounded_p + 2.0 * kSmallest; }

// weight * value; an infinite value has no bound under any weight.
double weighted(double weight, double value) {
  if (weight == 0.0) return value == kInf ? kInf : 0.0;
  return weight * value + std::min(value, kSmallest);
}

RowSums zero_sums(Eigen::Index head_size_v) {
  const Eigen::ArrayXd zero = Eigen::ArrayXd::Zero(head_size_v);
  return {zero, zero, zero, zero, {}};
}

// Number of visible keys and how far they spread.
void count(const ConditionedRow& row, RowSums& sums) {
  const std::vector<Eigen::Index>& rows = row.keys.value_row;
  sums.row[kRowVisible] = static_cast<double>(rows.size());
  if (rows.empty()) return;
  const auto [first, last] = std::minmax_element(rows.begin(), rows.end());
  sums.row[kRowSpan] = static_cast<double>(row.places[static_cast<std::size_t>(*last)] -
                                           row.places[static_cast<std::size_t>(*first)] + 1);
}

bool without_bound(const ConditionedRow& row, const State& state) {
  const auto finite = [](double u) { return std::isfinite(u); };
  return state.out.array().isNaN().any() || std::isnan(state.lse) || row.sink == kInf ||
         (row.sink && std::isnan(*row.sink)) ||
         !std::all_of(row.keys.score.begin(), row.keys.score.end(), finite);
}

RowSums infinite_sums(RowSums sums) {
  for (Eigen::ArrayXd* sum : {&sums.pv, &sums.pav, &sums.puv, &sums.v}) sum->setConstant(kInf);
  for (int field = 0; field < kNumRowFields; ++field) {
    if (field != kRowVisible && field != kRowSpan) sums.row[static_cast<std::size_t>(field)] = kInf;
  }
  return sums;
}

// Adds up keys, one after another.
class Summation {
 public:
  Summation(const ConditionedRow& row, RowSums& sums)
      : row_(row), sums_(sums), query_(row.query.cwiseAbs()), sink_(row.sink.value_or(-kInf)) {}

  void sum() {
    find_normaliser();
    const std::size_t count = row_.keys.score.size();
    for (std::size_t j = 0; j < count; ++j) add(j);
    add_sink();
    if (query_.size() > 0) {
      field(kRowQueryL1) = std::abs(row_.scale) * query_.sum();
      field(kRowQueryMax) = query_.maxCoeff();
    }
  }

 private:
  double& field(RowField f) { return sums_.row[static_cast<std::size_t>(f)]; }
  void raise(RowField f, double x) { field(f) = std::max(field(f), x); }

  void find_normaliser() {
    const std::vector<double>& u = row_.keys.score;
    field(kRowKeysMax) = *std::max_element(u.begin(), u.end());
    field(kRowMax) = std::max(field(kRowKeysMax), sink_);
    for (const double score : u) denominator_ += std::exp(score - field(kRowMax));
    denominator_ += std::exp(sink_ - field(kRowMax));
    field(kRowLse) = field(kRowMax) + std::log(denominator_);
  }

  void add(std::size_t j) {
    const Eigen::Index at = row_.keys.value_row[j];
    const double d = field(kRowMax) - row_.keys.score[j];
    const double rounded_p = std::exp(-d) / denominator_;
    const double p = not_below(rounded_p);
    const double a = std::abs(row_.scale) *
                     dot(query_.data(), row_.keys_sizes.elements.row(at).data(), query_.cols());
    field(kRowMass) += rounded_p;
    field(kRowPa) += product(p, a);
    field(kRowPd) += product(p, d);
    raise(kRowAMax, a);
    raise(kRowDMax, d);
    if (!row_.bias_sizes.empty()) raise(kRowBiasMax, row_.bias_sizes[j]);
    add_key(at);
    add_values(p, product(p, a), product(p, d), row_.values_sizes.elements.row(at).data());
    raise(kRowValueMax, row_.values_sizes.largest[at]);
  }

  // One pass over the values for all four sums.
  void add_values(double p, double pa, double pd, const double* v) {
    double* pv = sums_.pv.data();
    double* pav = sums_.pav.data();
    double* puv = sums_.puv.data();
    double* all = sums_.v.data();
    const Eigen::Index size = sums_.v.size();
    if (p == 0.0 || pa == 0.0 || pd == 0.0) {
      for (Eigen::Index j = 0; j < size; ++j) {
        pv[j] += weighted(p, v[j]);
        pav[j] += weighted(pa, v[j]);
        puv[j] += weighted(pd, v[j]);
        all[j] += v[j];
      }
      return;
    }
    for (Eigen::Index j = 0; j < size; ++j) {
      const double least = std::min(v[j], kSmallest);
      pv[j] += p * v[j] + least;
      pav[j] += pa * v[j] + least;
      puv[j] += pd * v[j] + least;
      all[j] += v[j];
    }
  }

  void add_key(Eigen::Index at) {
    raise(kRowKeyL1, std::abs(row_.scale) * row_.keys_sizes.sum[at]);
    raise(kRowKeyMax, row_.keys_sizes.largest[at]);
  }

  void add_sink() {
    if (!std::isfinite(sink_)) return;
    const double distance = std::abs(sink_ - field(kRowKeysMax));
    const double p = not_below(std::exp(sink_ - field(kRowMax)) / denominator_);
    field(kRowSinkDistance) = product(p, distance);
    raise(kRowDMax, distance);
  }

  const ConditionedRow& row_;
  RowSums& sums_;
  const RowMatrix query_;
  const double sink_;
  double denominator_ = 0.0;
};

// Moves every sum to the safe side of its true value.
void add_slack(RowSums& sums) {
  for (Eigen::ArrayXd* sum : {&sums.pv, &sums.pav, &sums.puv, &sums.v}) *sum *= 1.0 + kSumSlack;
  double& mass = sums.row[kRowMass];
  mass *= 1.0 - kSumSlack;
  if (mass < std::numeric_limits<double>::min()) mass = 0.0;  // the slack is too small for it
  for (int f = kRowPa; f <= kRowValueMax; ++f) {
    sums.row[static_cast<std::size_t>(f)] *= 1.0 + kSumSlack;
  }
}

}  // namespace

Magnitudes with_row_sizes(RowMatrix elements) {
  Magnitudes sizes;
  sizes.sum = Eigen::ArrayXd::Zero(elements.rows());
  sizes.largest = Eigen::ArrayXd::Zero(elements.rows());
  for (Eigen::Index i = 0; elements.cols() > 0 && i < elements.rows(); ++i) {
    sizes.sum[i] = elements.row(i).sum();
    sizes.largest[i] = elements.row(i).maxCoeff();
  }
  sizes.elements = std::move(elements);
  return sizes;
}

RowSums row_sums(const ConditionedRow& row, const State& state) {
  RowSums sums = zero_sums(state.out.size());
  count(row, sums);
  if (without_bound(row, state)) return infinite_sums(std::move(sums));
  if (row.keys.score.empty()) {
    const double sink = row.sink.value_or(-kInf);
    sums.row[kRowMax] = sums.row[kRowLse] = sink;
    sums.row[kRowKeysMax] = -kInf;
    return sums;
  }
  Summation(row, sums).sum();
  add_slack(sums);
  return sums;
}

float rounded_up(double x) {
  if (std::isnan(x)) return std::numeric_limits<float>::infinity();
  const auto nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) >= x) return nearest;
  return std::nextafter(nearest, std::numeric_limits<float>::infinity());
}

}  // namespace attn::reference
