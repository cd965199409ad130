#include "judge/peer_policies.h"

#include <algorithm>
#include <cmath>

#include "attn/arithmetic.h"

namespace attn::judge {

PolicyTally::PolicyTally(DType stored, bool has_magnitudes, bool has_naive)
    : eps_(2.0 * unit_roundoff(answer_format(stored))),
      has_magnitudes_(has_magnitudes),
      has_naive_(has_naive) {}

// Errors within these satisfy every elementwise rule but ONNX's, which is tighter still.
constexpr double kModest = 5e-3;

void PolicyTally::add_elementwise(const PolicyRow& row) {
  bool tight = true;
  bool modest = true;
  double squares = 0.0;
  Range expected = expected_, actual = actual_;
  for (std::size_t j = 0; j < row.expected.size(); ++j) {
    const double e = row.expected[j];
    const double a = row.actual[j];
    const double error = std::fabs(a - e);
    const double size = std::fabs(e);
    tight &= error <= 1e-7 + 1e-3 * size;
    modest &= error <= kModest + kModest * size;
    squares += error * error;
    expected.low = e < expected.low ? e : expected.low;
    expected.high = e > expected.high ? e : expected.high;
    actual.low = a < actual.low ? a : actual.low;
    actual.high = a > actual.high ? a : actual.high;
  }
  allclose_1e3_ &= tight;
  squared_errors_ += squares;
  expected_ = expected;
  actual_ = actual;
  if (!modest) add_large_errors(row);
}

void PolicyTally::add_large_errors(const PolicyRow& row) {
  for (std::size_t j = 0; j < row.expected.size(); ++j) {
    const double size = std::fabs(row.expected[j]);
    const double error = std::fabs(row.actual[j] - row.expected[j]);
    allclose_1e2_ &= error <= 1e-2 + 1e-2 * size;
    allclose_15e3_ &= error <= 1.5e-2 + 1.5e-2 * size;
    allclose_2e2_ &= error <= 2e-2 + 2e-2 * size;
    allclose_gpumode_ &= error <= 8e-3 + 2e-2 * size;
    flashinfer_ &= error <= std::max(1e-2, 1e-2 * size);
  }
}

void PolicyTally::add(const PolicyRow& row) {
  const std::size_t n = row.expected.size();
  elements_ += static_cast<std::int64_t>(n);
  add_elementwise(row);
  const double relative = 8.0 * (1.0 + row.visible) * eps_;
  for (std::size_t j = 0; j < row.magnitudes.size(); ++j) {
    const double error = std::fabs(row.actual[j] - row.expected[j]);
    absmag_ &= error <= std::max(relative * std::fabs(row.expected[j]), eps_ * row.magnitudes[j]);
  }
  for (std::size_t j = 0; j < row.naive.size(); ++j) {
    const double error = std::fabs(row.naive[j] - row.expected[j]);
    const bool stays = error <= naive_error_ || std::isnan(naive_error_);
    naive_error_ = stays ? naive_error_ : error;  // once NaN, nothing passes
  }
}

std::map<std::string, std::optional<bool>, std::less<>> PolicyTally::verdicts(
    const Telemetry& telemetry) const {
  const double rmse =
      elements_ == 0 ? 0.0 : std::sqrt(squared_errors_ / static_cast<double>(elements_));
  const double range = elements_ == 0 ? 0.0
                                      : std::max(expected_.high, actual_.high) -
                                            std::min(expected_.low, actual_.low);
  std::map<std::string, std::optional<bool>, std::less<>> all{
      {"ggml_nmse", telemetry.nmse <= 5e-4},   {"onnx_allclose", allclose_1e3_},
      {"vllm_allclose", allclose_1e2_},        {"flashinfer_bench", flashinfer_},
      {"flashattention_2x", std::nullopt},     {"cudnn_isclose", allclose_2e2_},
      {"te_allclose", allclose_15e3_},         {"te_fp8_rmse", rmse <= 0.15 * range},
      {"kernelbench_allclose", allclose_1e2_}, {"gpumode_allclose", allclose_gpumode_},
      {"onednn_absmag", std::nullopt},         {"cosine", telemetry.cosine >= 0.99}};
  if (has_naive_) all["flashattention_2x"] = telemetry.max_abs <= 2.0 * naive_error_ + 1e-5;
  if (has_magnitudes_) all["onednn_absmag"] = absmag_;
  for (auto& [policy, passes] : all) {
    if (wrong_special_ && passes) passes = false;
  }
  return all;
}

}  // namespace attn::judge
