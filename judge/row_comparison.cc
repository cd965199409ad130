#include "judge/row_comparison.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "core/special_values.h"
#include "judge/row_values.h"

namespace attn::judge {
namespace {

WorstElement element_of(const ComparedRow& row, std::size_t j) {
  WorstElement element;
  element.at.assign(row.at.begin(), row.at.end());
  element.at.push_back(row.first + static_cast<std::int64_t>(j));
  element.expected = without_nan_sign(row.expected[j]);
  element.actual = without_nan_sign(row.actual[j]);
  element.bound = row.allowed[j];
  return element;
}

double quotient(double error, double allowed) {
  if (error == 0.0) return 0.0;
  return allowed > 0.0 ? error / allowed : kInf;
}

// What |actual| may not exceed: the hull and what rounding adds to it; without a bound the hull,
// which then includes that.
double limit_of(double hull, double allowed) { return allowed < kInf ? hull + allowed : hull; }

// Of a row in one look: whether every element is finite, within its bound and its hull, and the
// largest ratio.
struct Glance {
  bool clean = true;
  double ratio = 0.0;
};

Glance glance_at(const ComparedRow& row) {
  const std::size_t n = row.expected.size();
  const double* e = row.expected.data();
  const double* a = row.actual.data();
  const double* allowed = row.allowed.data();
  Glance glance;
  for (std::size_t j = 0; j < n; ++j) {
    const double error = std::fabs(a[j] - e[j]);  // NaN when either is not finite, or both
    const double ratio = error / allowed[j];      // NaN for 0 / 0, which is no error
    glance.clean &= (error <= allowed[j]) & (std::fabs(a[j]) <= limit_of(row.hull, allowed[j])) &
                    (error < kInf);
    glance.ratio = ratio > glance.ratio ? ratio : glance.ratio;
  }
  return glance;
}

}  // namespace

bool special_fits(double expected, double actual, double reach, double largest) {
  if (std::isnan(expected) || std::isnan(actual)) {
    return std::isnan(expected) && std::isnan(actual);
  }
  if (std::isinf(expected)) return actual == expected;
  return std::fabs(actual) >= largest && reach > largest &&
         std::signbit(actual) == std::signbit(expected);
}

RowComparison::RowComparison(std::string name, double largest) : largest_(largest) {
  result_.name = std::move(name);
}

void RowComparison::add(const ComparedRow& row) {
  result_.elements += static_cast<std::int64_t>(row.expected.size());
  if (!refuses_zeros_) look_for_zeros(row);
  const Glance glance = glance_at(row);
  if (glance.clean && glance.ratio <= result_.ratio) return;
  for (std::size_t j = 0; j < row.expected.size(); ++j) judge_element(row, j);
}

void RowComparison::look_for_zeros(const ComparedRow& row) {
  for (std::size_t j = 0; j < row.expected.size(); ++j) {
    if (!std::isfinite(row.expected[j])) continue;
    refuses_zeros_ |= std::fabs(row.expected[j]) > row.allowed[j];
    allows_errors_ |= row.allowed[j] > 0.0;
  }
}

void RowComparison::judge_element(const ComparedRow& row, std::size_t j) {
  const double expected = row.expected[j];
  const double actual = row.actual[j];
  const double allowed = row.allowed[j];
  const double size = std::fabs(actual);
  const double reach = std::isinf(allowed) ? row.hull : std::fabs(expected) + allowed;
  if (!std::isfinite(expected) || !std::isfinite(actual)) {
    if (!special_fits(expected, actual, reach, largest_)) {
      ++result_.over;
      fail(Gate::kNonfinite, kInf, row, j);
    }
    return;
  }
  const double error = std::fabs(actual - expected);
  const bool within = error <= allowed;
  const double limit = limit_of(row.hull, allowed);
  const bool inside = size <= limit;
  const double ratio = quotient(error, allowed);
  if (within && inside) return note(ratio, row, j);
  if (special_fits(expected, actual, reach, largest_)) return;  // clamped
  ++result_.over;
  if (!inside) fail(Gate::kHull, allowed < kInf ? ratio : quotient(size, limit), row, j);
  if (!within) fail(row.gate, ratio, row, j);
}

void RowComparison::note(double ratio, const ComparedRow& row, std::size_t j) {
  if (!(ratio > result_.ratio)) return;
  result_.ratio = ratio;
  result_.worst = element_of(row, j);
}

void RowComparison::fail(Gate gate, double ratio, const ComparedRow& row, std::size_t j) {
  note(ratio, row, j);
  std::optional<Failure>& worst = failures_[static_cast<std::size_t>(gate)];
  if (worst && !(ratio > worst->ratio)) return;
  worst = Failure{ratio, limit_of(row.hull, row.allowed[j]), element_of(row, j)};
}

std::string RowComparison::reason(Gate gate, const Failure& failure) const {
  const WorstElement& worst = failure.element;
  const std::string where = fmt::format("{}[{}]", result_.name, fmt::join(worst.at, ","));
  switch (gate) {
    case Gate::kNonfinite:
      return fmt::format("{} is {}, expected {}", where, worst.actual, worst.expected);
    case Gate::kEmptyRows:
      return fmt::format("{} is {}, expected {}: its row sees no key", where, worst.actual,
                         worst.expected);
    case Gate::kExact:
      return fmt::format("{} is {}, expected exactly {}", where, worst.actual, worst.expected);
    case Gate::kHull:
      return fmt::format("{} is {}, outside the hull of its values, {:.6g}", where, worst.actual,
                         failure.limit);
    case Gate::kStrict:
      return fmt::format("{} is off by {:.3g} times what is probable", where, failure.ratio);
    default:
      return fmt::format("{} is off by {:.3g} times its bound", where, failure.ratio);
  }
}

void RowComparison::report_to(Gates& gates) const {
  for (int i = 0; i < kNumGates; ++i) {
    const auto gate = static_cast<Gate>(i);
    const std::optional<Failure>& failure = failures_[static_cast<std::size_t>(i)];
    if (failure) gates.fail(gate, reason(gate, *failure), failure->ratio);
  }
}

}  // namespace attn::judge
