// The job batch on one thread through REFERENCE, without and with its conditioning sums, and
// through CPU: seconds, and GFLOP/s on visible pairs.
#include <benchmark/benchmark.h>

#include <deque>
#include <optional>

#include "attn/conditioning.h"
#include "attn/cpu_backend.h"
#include "attn/host_tensor.h"
#include "attn/parallel.h"
#include "attn/reference.h"
#include "bench/job_batch.h"

namespace attn::bench {
namespace {

// Memory for the conditioning sums of a problem.
class SumsMemory {
 public:
  SumsMemory(const AttentionProblem& problem, Outputs& outputs) {
    for (const OutputSpec& spec : conditioning_specs(problem)) {
      memory_.emplace_back(spec.dtype, spec.shape);
      outputs.*spec.view = memory_.back().view();
    }
  }

 private:
  std::deque<HostTensor> memory_;
};

void run_job(benchmark::State& state, const Backend& backend, bool conditioning = false) {
  static const JobBatch batch;
  set_num_workers(1);
  const AttentionProblem problem = batch.problem();
  const AttentionOp& op = *problem.attention();
  const DType dtype = backend.capabilities().output_dtypes.front();
  std::vector<double> out(
      static_cast<std::size_t>(op.num_tokens() * op.num_heads() * op.head_size_v()));
  std::vector<double> lse(static_cast<std::size_t>(op.num_tokens() * op.num_heads()));
  Outputs outputs;
  outputs.out = contiguous(static_cast<void*>(out.data()), dtype,
                           {op.num_tokens(), op.num_heads(), op.head_size_v()});
  outputs.lse =
      contiguous(static_cast<void*>(lse.data()), dtype, {op.num_heads(), op.num_tokens()});
  std::optional<SumsMemory> sums;
  if (conditioning) sums.emplace(problem, outputs);
  for (auto _ : state) run_once(backend, problem, outputs);
  state.counters["GFLOP/s"] = benchmark::Counter(batch.visible_flops() / 1e9,
                                                 benchmark::Counter::kIsIterationInvariantRate);
}

void reference(benchmark::State& state) { run_job(state, *make_reference_backend()); }
void reference_sums(benchmark::State& state) { run_job(state, *make_reference_backend(), true); }
void cpu(benchmark::State& state) { run_job(state, *make_cpu_backend()); }

BENCHMARK(reference)->Name("job/REFERENCE")->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK(reference_sums)->Name("job/REFERENCE+sums")->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK(reference)->Name("job/REFERENCE again")->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK(cpu)->Name("job/CPU")->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace attn::bench

BENCHMARK_MAIN();
