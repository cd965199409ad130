// What a comparison says.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "attn/view.h"

namespace attn {

enum class Verdict : std::uint8_t { kPass, kFail, kSkipped, kMistrusted };
std::string_view name(Verdict verdict);  // "pass", ...

// |expected - actual| <= atol + rtol * |expected|, element by element. NaN and infinities must
// match in place and sign; +0 and -0 are equal.
struct Tolerance {
  double atol = 0.0;
  double rtol = 0.0;
};

struct WorstElement {
  std::vector<std::int64_t> at;  // indices; empty when no element differs
  double expected = 0.0;
  double actual = 0.0;
  double bound = 0.0;  // what was allowed there
};

struct TensorComparison {
  std::string name;
  std::int64_t elements = 0;
  std::int64_t over = 0;  // elements beyond what was allowed
  double ratio =
      0.0;  // largest |expected - actual| / allowed; infinite for a special that does not match
  WorstElement worst;  // the first element with that ratio

  Verdict verdict() const { return over == 0 ? Verdict::kPass : Verdict::kFail; }
};

// Compares element by element; both of the same shape and floating, else Error.
TensorComparison compare_within(const std::string& name, const TensorView& expected,
                                const TensorView& actual, Tolerance tolerance);

// Compares bit for bit, but for the code of a NaN in types below 16 bits; both of the same shape
// and type, else Error. What is allowed is 0.
TensorComparison compare_bits(const std::string& name, const TensorView& expected,
                              const TensorView& actual);

// Compares f8_e4m3fn codes: NaN only with NaN (any NaN code), else at most `neighbours` steps
// apart. ratio is the largest distance in codes divided by `neighbours` (infinite when that is 0).
TensorComparison compare_codes(const std::string& name, const TensorView& expected,
                               const TensorView& actual, int neighbours);

}  // namespace attn
