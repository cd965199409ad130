#include "cli/answer.h"

#include <fmt/format.h>

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
  MutableTensorView view =
      contiguous(static_cast<void*>(nullptr), spec.dtype, std::span(spec.shape));
  const auto bytes = static_cast<std::size_t>(view.num_units() * unit_bytes(spec.dtype));
  memory_.push_back(std::make_unique<std::byte[]>(bytes));
  view.data = memory_.back().get();

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

TensorView Answer::tensor(const std::string& name) const {
  for (const NamedTensor& t : tensors_) {
    if (t.name == name) return t.view;
  }
  return {};
}

}  // namespace attn::cli
