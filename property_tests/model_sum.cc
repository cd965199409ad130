#include "property_tests/model_sum.h"

#include <algorithm>
#include <cmath>

namespace attn::property_tests {
namespace {

constexpr std::int64_t kMoreLanes = 8;

// Fraction bits of an accumulator whose operations err by at most `unit`.
int bits_of_unit(double unit, bool truncate) {
  const int exponent = -std::ilogb(unit);  // unit >= 2^-exponent
  return truncate ? exponent : exponent - 1;
}

NumberRounder inner_rounder(const Summation& sum, const Rounding& rounding) {
  if (!sum.inner) return NumberRounder(rounding);
  const int bits = bits_of_unit(*sum.inner, sum.mode == RoundingMode::kTruncate);
  const int most = NumberRounder(rounding).fraction_bits();
  return NumberRounder(rounding, std::clamp(bits, 1, most));
}

}  // namespace

SumRules::SumRules(const Summation& sum, bool flush, SumOrder order, std::int64_t grid_shift)
    : type_(sum.type),
      fused_(sum.fused),
      order_(order),
      lanes_(sum.mma_k > 0 ? 1 : sum.lanes),
      block_(sum.block),
      mma_k_(sum.mma_k),
      shift_(grid_shift),
      truncate_(sum.mode == RoundingMode::kTruncate) {
  const Rounding rounding{sum.type, sum.mode, 1.0, flush};
  outer_ = NumberRounder(rounding);
  inner_ = inner_rounder(sum, rounding);
  direct_ = unit_roundoff(type_) <= unit_roundoff(NumberFormat::kF64);
  plain_f32_ = type_ == NumberFormat::kF32 && !truncate_ && !flush && !sum.inner;
  if (order == SumOrder::kMore && lanes_ == 1 && block_ == 0 && mma_k_ == 0 && !sum.inner) {
    tree_ = true;
    lanes_ = kMoreLanes;
  }
}

double SumRules::join(double a, double b) const {
  return direct_ ? outer_(a + b) : outer_(sum_to_odd(a, b));
}

double SumRules::join_tree(std::span<double> sums) const {
  for (std::size_t stride = 1; stride < sums.size(); stride *= 2) {
    for (std::size_t i = 0; i + stride < sums.size(); i += 2 * stride) {
      sums[i] = join(sums[i], sums[i + stride]);
    }
  }
  return sums[0];
}

double SumRules::step(double acc, double a, double b) const {
  if (direct_) {
    return fused_ ? inner_(std::fma(a, b, acc)) : inner_(acc + inner_(a * b));
  }
  const double product = fused_ ? a * b : inner_(a * b);
  return inner_(sum_to_odd(acc, product));
}

void SumRules::add_products(double a, std::span<const double> b, double* acc) const {
  if (plain_f32_ && fused_) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      acc[j] = static_cast<double>(static_cast<float>(sum_to_odd(acc[j], a * b[j])));
    }
    return;
  }
  for (std::size_t j = 0; j < b.size(); ++j) acc[j] = step(acc[j], a, b[j]);
}

double SumRules::matrix_step(double acc, std::span<const double> products) const {
  double largest = std::fabs(acc);
  double plain = acc;
  for (const double p : products) {
    largest = std::max(largest, std::fabs(p));
    plain += p;
  }
  if (!std::isfinite(plain) || largest == 0.0) return plain;
  // The last place of the largest addend.
  const double place =
      std::max(std::ldexp(1.0, std::ilogb(largest) - inner_.fraction_bits()), inner_.quantum());
  const auto aligned = [&](double x) {
    return (truncate_ ? std::trunc(x / place) : std::nearbyint(x / place));
  };
  double units = aligned(acc);  // of `place`: whole numbers, added exactly
  for (const double p : products) units += aligned(p);
  return inner_(units * place);
}

double SumRules::matrix_block(const double* a, const double* b, std::int64_t size) const {
  double acc = 0.0;
  std::vector<double> products;
  for (std::int64_t first = 0; first < size; first += mma_k_) {
    products.clear();
    for (std::int64_t i = first; i < std::min(size, first + mma_k_); ++i) {
      products.push_back(a[i] * b[i]);
    }
    acc = matrix_step(acc, products);
  }
  return acc;
}

double SumRules::dot_tree(const double* a, const double* b, std::int64_t size) const {
  if (size == 0) return 0.0;
  std::vector<double> products;
  for (std::int64_t i = 0; i < size; ++i) products.push_back(step(0.0, a[i], b[i]));
  return join_tree(products);
}

double SumRules::dot_block(const double* a, const double* b, std::int64_t size) const {
  if (mma_k_ > 0) return matrix_block(a, b, size);
  if (lanes_ == 1) {
    double acc = 0.0;
    const bool back = order_ == SumOrder::kBackward;
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t at = back ? size - 1 - i : i;
      acc = step(acc, a[at], b[at]);
    }
    return acc;
  }
  std::vector<double> lanes(static_cast<std::size_t>(lanes_), 0.0);
  const std::int64_t chunk = (size + lanes_ - 1) / lanes_;
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t at = order_ == SumOrder::kBackward ? size - 1 - i : i;
    const std::int64_t lane = order_ == SumOrder::kChunks ? at / chunk : at % lanes_;
    double& acc = lanes[static_cast<std::size_t>(lane)];
    acc = step(acc, a[at], b[at]);
  }
  return join_tree(lanes);
}

double SumRules::dot(const double* a, const double* b, std::int64_t size) const {
  if (tree_) return dot_tree(a, b, size);
  if (block_ == 0) return dot_block(a, b, size);
  double total = 0.0;
  for (std::int64_t first = 0; first < size; first += block_) {
    const double sum = dot_block(a + first, b + first, std::min(block_, size - first));
    total = first == 0 ? sum : join(total, sum);
  }
  return total;
}

KeySums::KeySums(const SumRules& rules, std::int64_t width)
    : rules_(rules),
      width_(static_cast<std::size_t>(width)),
      lanes_(static_cast<std::size_t>(rules.lanes()), std::vector<double>(width_, 0.0)),
      total_(width_, 0.0),
      used_(lanes_.size(), false) {}

void KeySums::start_with(double term) {
  std::fill(total_.begin(), total_.end(), term);
  has_total_ = true;
}

void KeySums::add(std::int64_t position, double weight, std::span<const double> value) {
  const std::int64_t block = rules_.block_of(position);
  if (in_block_ && block != block_) end_block();
  block_ = block;
  in_block_ = true;
  if (rules_.mma_k() == 0) {
    const auto lane = static_cast<std::size_t>(rules_.lane_of(position));
    rules_.add_products(weight, value, lanes_[lane].data());
    used_[lane] = true;
    return;
  }
  const std::int64_t group = rules_.group_of(position);
  if (!pending_weights_.empty() && group != group_) end_group();
  group_ = group;
  pending_weights_.push_back(weight);
  pending_values_.push_back(value.data());
}

void KeySums::end_group() {
  if (pending_weights_.empty()) return;
  std::vector<double> products(pending_weights_.size());
  for (std::size_t j = 0; j < width_; ++j) {
    for (std::size_t i = 0; i < products.size(); ++i) {
      products[i] = pending_weights_[i] * pending_values_[i][j];
    }
    lanes_[0][j] = rules_.matrix_step(lanes_[0][j], products);
  }
  used_[0] = true;
  pending_weights_.clear();
  pending_values_.clear();
}

void KeySums::end_block() {
  end_group();
  std::vector<double> sums(lanes_.size());
  for (std::size_t j = 0; j < width_; ++j) {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      sums[lane] = lanes_[lane][j];
      lanes_[lane][j] = 0.0;
    }
    const double sum = rules_.join_tree(sums);
    total_[j] = has_total_ ? rules_.join(total_[j], sum) : sum;
  }
  std::fill(used_.begin(), used_.end(), false);
  has_total_ = true;
  in_block_ = false;
}

void KeySums::rescale(double factor, const NumberRounder& vector) {
  end_group();
  const auto scale_all = [&](std::vector<double>& sums) {
    for (double& x : sums) x = vector(x * factor);
  };
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (used_[lane]) scale_all(lanes_[lane]);
  }
  if (has_total_) scale_all(total_);
}

std::vector<double> KeySums::finish() {
  if (in_block_) end_block();
  return total_;
}

}  // namespace attn::property_tests
