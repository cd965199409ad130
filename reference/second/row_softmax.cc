#include "reference/second/row_softmax.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

namespace attn::second {

static_assert(LDBL_MANT_DIG >= 64, "long double must be wider than double to check it");

namespace {

constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
constexpr long double kNaN = std::numeric_limits<long double>::quiet_NaN();

}  // namespace

RowSoftmax::RowSoftmax(std::int64_t width)
    : max_(-kInfinity),
      sums_(static_cast<std::size_t>(width), 0.0L),
      specials_(static_cast<std::size_t>(width), 0.0L) {}

bool RowSoftmax::begin_key(long double logit) {
  if (logit == -kInfinity) return false;
  is_nan_ = is_nan_ || std::isnan(logit) || logit == kInfinity;
  if (is_nan_) return false;
  if (logit > max_) {
    const long double shrink = std::exp(max_ - logit);  // 0 for the first key
    total_ *= shrink;
    for (long double& sum : sums_) sum *= shrink;
    max_ = logit;
  }
  weight_ = std::exp(logit - max_);
  total_ += weight_;
  return true;
}

void RowSoftmax::add_element(std::int64_t j, long double value) {
  const auto at = static_cast<std::size_t>(j);
  if (std::isfinite(value)) {
    sums_[at] += weight_ * value;
  } else {
    specials_[at] += value;
  }
}

long double RowSoftmax::keys_lse() const {
  return max_ == -kInfinity ? -kInfinity : max_ + std::log(total_);
}

std::vector<long double> RowSoftmax::quotients(long double factor, long double divisor) const {
  std::vector<long double> out(sums_.size());
  for (std::size_t j = 0; j < out.size(); ++j) {
    out[j] = specials_[j] == 0.0L ? factor * sums_[j] / divisor : specials_[j];
  }
  return out;
}

RowAnswer RowSoftmax::answer() const {
  if (is_nan_) return {std::vector<long double>(sums_.size(), kNaN), kNaN};
  if (max_ == -kInfinity) return {std::vector<long double>(sums_.size(), 0.0L), -kInfinity};
  return {quotients(1.0L, total_), keys_lse()};
}

RowAnswer RowSoftmax::answer(long double sink, bool lse_includes_sink) const {
  if (is_nan_ || std::isnan(sink)) return {std::vector<long double>(sums_.size(), kNaN), kNaN};
  if (sink == -kInfinity) return answer();
  if (sink == kInfinity) {
    return {std::vector<long double>(sums_.size(), 0.0L),
            lse_includes_sink ? kInfinity : keys_lse()};
  }
  const long double max = std::max(max_, sink);
  const long double shrink = std::exp(max_ - max);
  const long double total = total_ * shrink + std::exp(sink - max);
  return {quotients(shrink, total), lse_includes_sink ? max + std::log(total) : keys_lse()};
}

}  // namespace attn::second
