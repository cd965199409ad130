#include "judge/summation_depth.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attn::judge {

double accumulator_unit(const Summation& sum) {
  return unit_roundoff(sum.type) * (sum.mode == RoundingMode::kTruncate ? 2.0 : 1.0);
}

double summation_depth(const Summation& sum, double n, double span, bool contiguous) {
  const auto block = static_cast<double>(sum.block);
  const auto lanes = static_cast<double>(sum.lanes);
  const double n_in = sum.block > 0 ? std::min(n, block) : n;
  const double span_in = sum.block > 0 ? std::min(span, block) : span;
  double inside = std::min(n_in, std::ceil(span_in / lanes));
  if (sum.mma_k > 0) {
    const auto k = static_cast<double>(sum.mma_k);
    inside = std::min(n_in, std::ceil(span_in / k) + (contiguous ? 0.0 : 1.0)) * (k + 2.0);
  }
  const double outside = sum.block > 0 ? std::min(n, std::ceil(span / block) + 1.0) : 0.0;
  const double unit = accumulator_unit(sum);
  const double unit_inside = sum.inner.value_or(unit);
  return (inside + (sum.fused ? 0.0 : 1.0)) * unit_inside +
         (outside + std::ceil(std::log2(lanes))) * unit;
}

double gamma_factor(double g) {
  return g < 0.5 ? g / (1.0 - g) : std::numeric_limits<double>::infinity();
}

}  // namespace attn::judge
