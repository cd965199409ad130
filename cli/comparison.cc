#include "cli/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "attn/error.h"

namespace attn::cli {
namespace {

bool is_written(const std::string& tensor) { return tensor.ends_with("_after"); }
bool is_written_cache(const std::string& tensor) {
  return is_written(tensor) && tensor.find("scale") == std::string::npos;
}

// Neighbouring codes apart that are allowed: none for an answer computed in float64.
int code_neighbours(const TensorOf& actual) {
  const TensorView out = actual("out");
  return out.present() && out.dtype == DType::kF64 ? 0 : 1;
}

}  // namespace

Verdict Comparison::verdict() const {
  const bool pass = std::all_of(tensors.begin(), tensors.end(), [](const TensorComparison& c) {
    return c.verdict() == Verdict::kPass;
  });
  return pass ? Verdict::kPass : Verdict::kFail;
}

double Comparison::ratio() const {
  double largest = 0.0;
  for (const TensorComparison& c : tensors) largest = std::max(largest, c.ratio);
  return largest;
}

std::string Comparison::reason() const {
  for (const TensorComparison& c : tensors) {
    if (c.verdict() == Verdict::kPass) continue;
    return fmt::format("{}[{}] is {}, expected {} within {}", c.name, fmt::join(c.worst.at, ","),
                       c.worst.actual, c.worst.expected, c.worst.bound);
  }
  return "";
}

Comparison compare_answer(const CaseFile& file, const TensorOf& expected, const TensorOf& actual,
                          const ToleranceOf& tolerance, const std::string& where) {
  Comparison result;
  for (const auto& [tensor, description] : file.outputs()) {
    const TensorView e = expected(tensor);
    if (!e.present()) throw Error(fmt::format("{}: output {} has no expectation", where, tensor));
    const TensorView a = actual(tensor);
    if (!a.present()) throw Error(fmt::format("{}: tensor {} is missing", where, tensor));
    try {
      if (tensor == "out_codes") {
        result.tensors.push_back(compare_codes(tensor, e, a, code_neighbours(actual)));
      } else if (is_written_cache(tensor)) {
        result.tensors.push_back(compare_bits(tensor, e, as_stored_like(e, a)));
      } else {
        result.tensors.push_back(compare_within(tensor, e, a, tolerance(tensor, a.dtype)));
      }
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", where, error.what()));
    }
  }
  return result;
}

Tolerance arithmetic_allowance(const std::string& tensor, DType stored, double vmax) {
  if (is_written(tensor)) return {};
  double unit = 1e-11;
  if (stored == DType::kF32) unit = 2e-5;
  if (stored == DType::kF16) unit = 4e-3;
  if (stored == DType::kBF16) unit = 2e-2;
  return {tensor == "out" ? unit * vmax : unit, unit};
}

}  // namespace attn::cli
