#include "cli/answer.h"

#include <chrono>

namespace attn::cli {

Answer::Answer(const Backend& backend, const AttentionProblem& problem) {
  const AttentionOp& op = *problem.attention();
  const Capabilities& capabilities = backend.capabilities();
  const DType dtype = capabilities.output_dtypes.front();
  Outputs outputs;
  outputs.lse_form = capabilities.lse_form;
  outputs.out = allocate("out", dtype, {op.num_tokens(), op.num_heads(), op.head_size_v()});
  if (capabilities.returns_lse) {
    outputs.lse = allocate("lse", dtype, {op.num_heads(), op.num_tokens()});
  }
  if (op.output_scale.present()) {
    outputs.out_codes = allocate("out_codes", DType::kF8E4M3FN,
                                 {op.num_tokens(), op.num_heads(), op.head_size_v()});
  }
  const auto start = std::chrono::steady_clock::now();
  exec_ = run_once(backend, problem, outputs);
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

MutableTensorView Answer::allocate(const std::string& name, DType dtype,
                                   std::initializer_list<std::int64_t> shape) {
  MutableTensorView view = contiguous(static_cast<void*>(nullptr), dtype, shape);
  const auto bytes = static_cast<std::size_t>(view.num_units() * unit_bytes(dtype));
  memory_.push_back(std::make_unique<std::byte[]>(bytes));
  view.data = memory_.back().get();
  tensors_.push_back({name, view});
  return view;
}

TensorView Answer::tensor(const std::string& name) const {
  for (const NamedTensor& t : tensors_) {
    if (t.name == name) return t.view;
  }
  return {};
}

}  // namespace attn::cli
