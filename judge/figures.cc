#include "judge/figures.h"

#include <cmath>

namespace attn::judge {
namespace {

bool all_finite(std::span<const double> expected, std::span<const double> actual) {
  double zeros = 0.0;  // NaN as soon as one value is not finite (or a difference overflows)
  for (std::size_t j = 0; j < expected.size(); ++j) zeros += (actual[j] - expected[j]) * 0.0;
  return zeros == 0.0;
}

}  // namespace

void Figures::add(const PolicyRow& row) {
  if (all_finite(row.expected, row.actual)) {
    add_finite(row);
  } else {
    add_with_specials(row);
  }
}

void Figures::add_finite(const PolicyRow& row) {
  telemetry_.add(row.expected, row.actual);
  policies_.add(row);
}

void Figures::add_with_specials(const PolicyRow& row) {
  std::vector<double> expected, actual, magnitudes, naive;
  for (std::size_t j = 0; j < row.expected.size(); ++j) {
    const double e = row.expected[j];
    const double a = row.actual[j];
    if (std::isfinite(e) && std::isfinite(a)) {
      expected.push_back(e);
      actual.push_back(a);
      if (!row.magnitudes.empty()) magnitudes.push_back(row.magnitudes[j]);
      if (!row.naive.empty()) naive.push_back(row.naive[j]);
      continue;
    }
    ++left_out_;
    if (e != a && !(std::isnan(e) && std::isnan(a))) policies_.add_wrong_special();
  }
  add_finite({expected, actual, magnitudes, naive, row.visible});
}

void Figures::write_to(Judgement& judgement) const {
  Telemetry telemetry = telemetry_.result();
  telemetry.left_out = left_out_;
  judgement.policies = policies_.verdicts(telemetry);
  if (policies_.elements() > 0) judgement.telemetry = telemetry;
}

}  // namespace attn::judge
