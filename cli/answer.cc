#include "cli/answer.h"

#include <chrono>

namespace attn::cli {

Answer::Answer(const Backend& backend, const AttentionProblem& problem) {
  const Capabilities& capabilities = backend.capabilities();
  Outputs outputs;
  outputs.lse_form = capabilities.lse_form;
  for (const OutputSpec& spec : output_specs(problem, capabilities.output_dtypes.front())) {
    if (spec.name != "lse" || capabilities.returns_lse) outputs.*spec.view = allocate(spec);
  }
  const auto start = std::chrono::steady_clock::now();
  exec_ = run_once(backend, problem, outputs);
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

MutableTensorView Answer::allocate(const OutputSpec& spec) {
  MutableTensorView view = contiguous(static_cast<void*>(nullptr), spec.dtype, spec.shape);
  const auto bytes = static_cast<std::size_t>(view.num_units() * unit_bytes(spec.dtype));
  memory_.push_back(std::make_unique<std::byte[]>(bytes));
  view.data = memory_.back().get();
  tensors_.push_back({std::string(spec.name), view});
  return view;
}

TensorView Answer::tensor(const std::string& name) const {
  for (const NamedTensor& t : tensors_) {
    if (t.name == name) return t.view;
  }
  return {};
}

}  // namespace attn::cli
