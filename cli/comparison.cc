#include "cli/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "attn/error.h"

namespace attn::cli {
namespace {

std::string at_text(const TensorComparison& c) {
  return fmt::format("{}[{}]", c.name, fmt::join(c.worst.at, ","));
}

Json to_json(const JudgedTensor& judged) {
  const TensorComparison& c = judged.comparison;
  Json worst = nullptr;
  if (!c.worst.at.empty()) {
    worst = {{"at", c.worst.at},
             {"expected", real(c.worst.expected)},
             {"actual", real(c.worst.actual)},
             {"bound", real(c.worst.bound)}};
  }
  return {{"elements", c.elements},
          {"over", c.over},
          {"ratio", real(c.ratio)},
          {"atol", real(judged.tolerance.atol)},
          {"rtol", real(judged.tolerance.rtol)},
          {"worst", worst}};
}

bool is_written(const std::string& tensor) { return tensor.ends_with("_after"); }
bool is_written_cache(const std::string& tensor) {
  return is_written(tensor) && tensor.find("scale") == std::string::npos;
}

// A cache of fewer than 16 bits an element comes back from a file as bytes.
TensorView with_type_of(const TensorView& expected, TensorView actual) {
  if (actual.dtype == DType::kU8 && unit_bytes(expected.dtype) == 1) actual.dtype = expected.dtype;
  return actual;
}

// Neighbouring codes apart that are allowed: none for an answer computed in float64.
int code_neighbours(const TensorOf& actual) {
  const TensorView out = actual("out");
  return out.present() && out.dtype == DType::kF64 ? 0 : 1;
}

}  // namespace

Verdict Comparison::verdict() const {
  const bool pass = std::all_of(tensors.begin(), tensors.end(), [](const JudgedTensor& t) {
    return t.comparison.verdict() == Verdict::kPass;
  });
  return pass ? Verdict::kPass : Verdict::kFail;
}

double Comparison::ratio() const {
  double largest = 0.0;
  for (const JudgedTensor& t : tensors) largest = std::max(largest, t.comparison.ratio);
  return largest;
}

std::string Comparison::reason() const {
  for (const JudgedTensor& t : tensors) {
    const TensorComparison& c = t.comparison;
    if (c.verdict() == Verdict::kPass) continue;
    return fmt::format("{} is {}, expected {} within {}", at_text(c), c.worst.actual,
                       c.worst.expected, c.worst.bound);
  }
  return "";
}

Json Comparison::tensors_json() const {
  Json all = Json::object();
  for (const JudgedTensor& t : tensors) all[t.comparison.name] = to_json(t);
  return all;
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
        const int neighbours = code_neighbours(actual);
        result.tensors.push_back({compare_codes(tensor, e, a, neighbours), {}});
      } else if (is_written_cache(tensor)) {
        result.tensors.push_back({compare_bits(tensor, e, with_type_of(e, a)), {}});
      } else {
        const Tolerance t = tolerance(tensor, a.dtype);
        result.tensors.push_back({compare_within(tensor, e, a, t), t});
      }
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", where, error.what()));
    }
  }
  return result;
}

Comparison compare_answer(const CaseFile& file, const Answer& expected, const TensorOf& actual,
                          const ToleranceOf& tolerance, const std::string& where) {
  return compare_answer(
      file, [&](const std::string& tensor) { return expected.tensor(tensor); }, actual, tolerance,
      where);
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
