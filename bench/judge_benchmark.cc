// The judge on one thread: GB/s over the answer (f32), the expectation (f64) and the four
// conditioning tensors (f32) of out [4096, 8, 128].
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "attn/conditioning.h"
#include "attn/host_tensor.h"
#include "attn/judgement.h"
#include "attn/random.h"

namespace attn::bench {
namespace {

constexpr std::int64_t kTokens = 4096, kHeads = 8, kSize = 128;

// A batch of one-token requests whose answer and sums are written down: the judge does not look at
// queries, keys and values.
class Judged {
 public:
  explicit Judged(DType stored)
      : query_(DType::kF32, {kTokens, kHeads, kSize}),
        starts_(DType::kI32, {kTokens + 1}),
        lens_(DType::kI32, {kTokens}),
        kv_starts_(DType::kI32, {kTokens + 1}),
        kv_(DType::kF32, {kTokens, 1, kSize}),
        expected_(DType::kF64, {kTokens, kHeads, kSize}),
        actual_(stored, {kTokens, kHeads, kSize}),
        sums_(DType::kF32, {kTokens, kHeads, kSize}),
        rows_(DType::kF64, {kTokens, kHeads, kNumRowFields}) {
    for (std::int64_t t = 0; t <= kTokens; ++t) {
      starts_.set(static_cast<double>(t), t);
      kv_starts_.set(static_cast<double>(t), t);
      if (t < kTokens) lens_.set(1.0, t);
    }
    sums_.fill(encode(DType::kF32, 1.0, Overflow::kInfinity));
    for (std::int64_t i = 0; i < expected_.num_units(); ++i) {
      const Words words = random_words(1, static_cast<std::uint64_t>(i), RandomTensor::kValue, 0);
      const double value = uniform(words, DType::kF32);
      expected_.set_code(i, encode(DType::kF64, value, Overflow::kInfinity));
      actual_.set_code(i, encode(stored, value * (1.0 + 0x1p-22), Overflow::kInfinity));
    }
    const double row[kNumRowFields] = {1, 5, 64, 64, 1, 1, 1, 0, 4, 4, 0, 8, 8, 2, 2, 2, 1};
    for (std::int64_t i = 0; i < rows_.num_units(); ++i) {
      rows_.set_code(i, encode(DType::kF64, row[i % kNumRowFields], Overflow::kInfinity));
    }
  }

  AttentionProblem problem() const {
    AttentionOp op;
    op.query = query_.view();
    op.query_start_loc = starts_.view();
    op.seq_lens = lens_.view();
    op.kv.kv_start_loc = kv_starts_.view();
    op.kv.key = kv_.view();
    op.kv.value = kv_.view();
    op.scale = 0.125;
    return AttentionProblem(op);
  }

  ExpectedAnswer expected() const {
    ExpectedAnswer answer;
    const TensorView sums = sums_.view();
    answer.expectation = {expected_.view(), {}, {}, {sums, sums, sums, sums, rows_.view(), {}, {}}};
    answer.tensors = {{"out", expected_.view()}};
    return answer;
  }

  ActualAnswer actual() const { return {{{"out", actual_.view()}}, {}, ""}; }

  double bytes() const {
    const auto elements = static_cast<double>(expected_.num_units());
    return elements * (static_cast<double>(unit_bytes(actual_.dtype())) + 8.0 + 4.0 * 4.0);
  }

 private:
  HostTensor query_, starts_, lens_, kv_starts_, kv_, expected_, actual_, sums_, rows_;
};

void judge_rows(benchmark::State& state, DType stored, const char* contract) {
  const Judged judged(stored);
  const AttentionProblem problem = judged.problem();
  const ExpectedAnswer expected = judged.expected();
  const ActualAnswer actual = judged.actual();
  JudgeOptions options;
  options.contract.name = contract;
  for (auto _ : state) {
    const Judgement judgement = judge_answer(problem, expected, actual, options);
    if (judgement.verdict != Verdict::kPass) state.SkipWithError(judgement.reason.c_str());
  }
  state.counters["GB/s"] =
      benchmark::Counter(judged.bytes() / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK_CAPTURE(judge_rows, f32, DType::kF32, "fp32")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(judge_rows, bf16, DType::kBF16, "bf16_flash")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(judge_rows, f16, DType::kF16, "f16_flash")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attn::bench

BENCHMARK_MAIN();
