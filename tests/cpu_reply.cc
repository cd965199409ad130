#include "tests/cpu_reply.h"

#include <cmath>
#include <cstring>
#include <new>

#include "attn/cpu_backend.h"
#include "attn/parallel.h"

namespace attn::cpu_tests {

Reply answer(const AttentionOp& op, int workers, int workspace_fill) {
  set_num_workers(workers);
  const AttentionProblem problem(op);
  const auto backend = make_cpu_backend();
  const std::size_t bytes = backend->workspace_bytes(problem);
  const std::align_val_t alignment{kWorkspaceAlignment};
  void* memory = ::operator new(bytes, alignment);
  std::memset(memory, workspace_fill, bytes);
  const std::int64_t T = op.num_tokens(), H = op.num_heads(), Dv = op.head_size_v();
  Reply run;
  run.out.assign(static_cast<std::size_t>(T * H * Dv), std::nanf(""));
  run.lse.assign(static_cast<std::size_t>(H * T), std::nanf(""));
  Outputs outputs;
  outputs.out = contiguous(run.out.data(), DType::kF32, {T, H, Dv});
  outputs.lse = contiguous(run.lse.data(), DType::kF32, {H, T});
  if (op.output_scale.present()) {
    run.codes.assign(run.out.size(), 0x55);
    outputs.out_codes = contiguous(run.codes.data(), DType::kF8E4M3FN, {T, H, Dv});
  }
  const auto plan = backend->prepare(problem, {memory, bytes});
  plan->run(problem, outputs);
  run.exec = plan->exec();
  ::operator delete(memory, alignment);
  return run;
}

}  // namespace attn::cpu_tests
