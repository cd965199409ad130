#include "cli/answer.h"

#include <fmt/core.h>

#include <chrono>
#include <span>

#include "attn/conditioning.h"
#include "attn/error.h"

namespace attn::cli {

AttentionProblem problem_of(const CaseFile& file, const std::string& path) {
  try {
    return file.problem();
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

TensorView as_stored_like(const TensorView& expected, TensorView actual) {
  if (actual.dtype == DType::kU8 && unit_bytes(expected.dtype) == 1) actual.dtype = expected.dtype;
  return actual;
}

Answer::Answer(const Backend& backend, const CaseFile& file, const AttentionProblem& problem,
               bool conditioning) {
  const Capabilities& capabilities = backend.capabilities();
  if (capabilities.lse_form != LseForm{}) {
    throw Error(
        fmt::format("{} writes lse in a form that result files do not have", backend.name()));
  }
  Outputs outputs;
  outputs.lse_form = capabilities.lse_form;
  for (const OutputSpec& spec : output_specs(problem, capabilities.output_dtypes.front())) {
    if (spec.name != "lse" || capabilities.returns_lse) outputs.*spec.view = allocate(file, spec);
  }
  if (conditioning) {
    for (const OutputSpec& spec : conditioning_specs(problem)) {
      outputs.*spec.view = allocate(file, spec);
    }
  }
  const auto start = std::chrono::steady_clock::now();
  exec_ = run_once(backend, problem, outputs);
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Memory in C order of the axes as they lie in the file: caches keep the order of the one before.
MutableTensorView Answer::allocate(const CaseFile& file, const OutputSpec& spec) {
  memory_.emplace_back(std::string(spec.name), spec.dtype, spec.shape);
  MutableTensorView view = memory_.back().view();
  MutableTensorView stored = view;
  const auto described = file.outputs().find(std::string(spec.name));
  if (described != file.outputs().end()) {
    stored = contiguous(view.data, spec.dtype, std::span(described->second.shape));
  }
  tensors_.push_back({std::string(spec.name), stored});
  if (spec.before.present()) {
    for (int axis = 0; axis < view.rank; ++axis) {
      view.stride_bytes[axis] = spec.before.stride_bytes[axis];
    }
  }
  return view;
}

std::string Answer::canary_damage() const {
  for (const GuardedTensor& tensor : memory_) {
    if (std::string damage = tensor.damage(); !damage.empty()) return damage;
  }
  return "";
}

TensorView Answer::tensor(const std::string& name) const {
  for (const NamedTensor& t : tensors_) {
    if (t.name == name) return t.view;
  }
  return {};
}

}  // namespace attn::cli
