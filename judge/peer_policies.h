// What the tolerances of other projects would have said of an answer. They decide nothing here.
//
//   ggml_nmse            NMSE <= 5e-4                        llama.cpp, test-backend-ops
//   onnx_allclose        atol 1e-7, rtol 1e-3                ONNX backend tests
//   vllm_allclose        atol 1e-2, rtol 1e-2                vLLM, most of FlashInfer's tests
//   flashinfer_bench     no |a - e| > 1e-2 with |a - e| / |e| > 1e-2
//   flashattention_2x    max |a - e| <= 2 max |naive - e| + 1e-5; naive = same precision
//   cudnn_isclose        atol 2e-2, rtol 2e-2                cuDNN frontend
//   te_allclose          atol 1.5e-2, rtol 1.5e-2            Transformer Engine, bf16
//   te_fp8_rmse          RMSE <= 0.15 of the range of both   Transformer Engine, fp8
//   kernelbench_allclose atol 1e-2, rtol 1e-2                KernelBench
//   gpumode_allclose     atol 8e-3, rtol 2e-2                GPU MODE
//   onednn_absmag        |a - e| <= 8 (1 + n) eps |e| or <= eps sum p|v|; eps = 2^-7 of bf16
//   cosine               >= 0.99
//
// allclose(atol, rtol) is |a - e| <= atol + rtol |e|.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "attn/judgement.h"

namespace attn::judge {

// Finite elements of one row, all spans of one length.
struct PolicyRow {
  std::span<const double> expected, actual;
  std::span<const double> magnitudes;  // sum p|v|; empty: not known
  std::span<const double> naive;       // empty: not known
  double visible = 0.0;                // n, keys the row sees
};

class PolicyTally {
 public:
  // `stored` is the type of the answer, floating; absent figures leave their policies without a
  // verdict.
  PolicyTally(DType stored, bool has_magnitudes, bool has_naive);

  void add(const PolicyRow& row);

  // NaN or infinity where another value is expected: no policy passes.
  void add_wrong_special() { wrong_special_ = true; }

  std::int64_t elements() const { return elements_; }
  // Several elements are expected, all of the same value.
  bool expects_a_constant() const { return elements_ > 1 && expected_.low == expected_.high; }
  bool expects_zero() const {
    return elements_ > 1 && expected_.low == 0.0 && expected_.high == 0.0;
  }

  // `telemetry` is of the same elements.
  std::map<std::string, std::optional<bool>, std::less<>> verdicts(
      const Telemetry& telemetry) const;

 private:
  struct Range {
    double low = std::numeric_limits<double>::infinity(), high = -low;
  };

  void add_elementwise(const PolicyRow& row);
  void add_large_errors(const PolicyRow& row);

  double eps_;
  bool has_magnitudes_, has_naive_;
  bool wrong_special_ = false;
  bool allclose_1e3_ = true, allclose_1e2_ = true, allclose_15e3_ = true, allclose_2e2_ = true;
  bool allclose_gpumode_ = true, flashinfer_ = true, absmag_ = true;
  double naive_error_ = 0.0;
  double squared_errors_ = 0.0;
  std::int64_t elements_ = 0;
  Range expected_, actual_;
};

}  // namespace attn::judge
