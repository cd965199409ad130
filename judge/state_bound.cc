#include "judge/state_bound.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/special_values.h"
#include "judge/row_values.h"

namespace attn::judge {
namespace {

constexpr std::int64_t kChunk = 64;
using Chunk = std::array<double, kChunk>;

void read_chunk(const TensorView& view, std::int64_t first, std::int64_t count, Chunk& chunk,
                std::int64_t token, std::int64_t head) {
  if (view.present()) {
    read_row(view, first, count, chunk.data(), token, head);
  } else {
    chunk.fill(0.0);  // merging has no scores
  }
}

// Constants that are not 0 raised to a number whose products stay normal: subnormal operands cost
// a processor a hundred cycles each, and a bound may be larger.
RowBound without_subnormals(RowBound bound) {
  constexpr double kLeast = 0x1p-800;
  for (double* constant :
       {&bound.pv, &bound.pav, &bound.puv, &bound.v, &bound.out, &bound.constant}) {
    if (*constant > 0.0 && *constant < kLeast) *constant = kLeast;
  }
  return bound;
}

template <class RowBoundOf>
RowError bounded_row(const Expectation& expected, std::int64_t token, std::int64_t head,
                     std::span<double> bounds, const RowBoundOf& row_bound) {
  const RowSums sums = row_sums(expected.sums.row, token, head);
  if (sums[kRowVisible] == 0.0) {
    std::fill(bounds.begin(), bounds.end(), 0.0);
    RowError error;
    error.empty = true;
    return error;
  }
  return element_bounds(row_bound(sums), expected.sums, expected.out, token, head, bounds);
}

}  // namespace

RowSums row_sums(const TensorView& cond_row, std::int64_t token, std::int64_t head) {
  RowSums sums;
  read_row(cond_row, 0, kNumRowFields, sums.data(), token, head);
  return sums;
}

RowError element_bounds(const RowBound& exact, const ConditioningSums& sums, const TensorView& out,
                        std::int64_t token, std::int64_t head, std::span<double> bounds) {
  const RowBound bound = without_subnormals(exact);
  RowError error;
  error.vacuous = bound.vacuous;
  error.out_of_range = bound.out_of_range;
  error.lse = bound.lse;
  error.lse_may_vanish = bound.lse_may_vanish;
  error.hull = bound.hull;
  if (!bound.vacuous.empty()) {
    std::fill(bounds.begin(), bounds.end(), kInf);
    return error;
  }
  Chunk pv, pav, puv, v, o;
  double largest_v = 0.0;
  bool all_finite = true;
  const auto size = static_cast<std::int64_t>(bounds.size());
  for (std::int64_t first = 0; first < size; first += kChunk) {
    const std::int64_t count = std::min(kChunk, size - first);
    read_chunk(sums.pv, first, count, pv, token, head);
    read_chunk(sums.pav, first, count, pav, token, head);
    read_chunk(sums.puv, first, count, puv, token, head);
    read_chunk(sums.v, first, count, v, token, head);
    read_chunk(out, first, count, o, token, head);
    double* to = bounds.data() + first;
    for (std::int64_t j = 0; j < count; ++j) {
      to[j] = bound.pv * pv[j] + bound.pav * pav[j] + bound.puv * puv[j] + bound.v * v[j] +
              bound.out * std::fabs(o[j]) + bound.constant;
      largest_v = std::max(largest_v, v[j]);
      all_finite &= to[j] < kInf;
    }
    if (bound.root_pv > 0.0) {
      for (std::int64_t j = 0; j < count; ++j) to[j] += bound.root_pv * std::sqrt(pv[j]);
    }
  }
  if (largest_v > bound.value_limit) {
    error.vacuous = "a sum of values may overflow";
    error.out_of_range = true;
  } else if (!all_finite) {
    error.vacuous = "a conditioning sum is infinite";
  }
  if (!error.vacuous.empty()) std::fill(bounds.begin(), bounds.end(), kInf);
  return error;
}

RowError state_row(const SoftmaxBound& bound, const Expectation& expected, std::int64_t token,
                   std::int64_t head, std::span<double> bounds) {
  return bounded_row(expected, token, head, bounds,
                     [&](const RowSums& sums) { return bound.row(sums); });
}

RowError probable_state_row(const SoftmaxBound& bound, const Expectation& expected,
                            std::int64_t token, std::int64_t head, std::span<double> bounds) {
  return bounded_row(expected, token, head, bounds,
                     [&](const RowSums& sums) { return bound.probable_row(sums); });
}

}  // namespace attn::judge
