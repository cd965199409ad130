#include "attn/cpu_backend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attn/error.h"
#include "attn/parallel.h"
#include "tests/cpu_definition.h"
#include "tests/cpu_random_problem.h"
#include "tests/cpu_reply.h"
#include "tests/cpu_score_problem.h"

namespace attn {
namespace {

using cpu_tests::Answer;
using cpu_tests::answer;
using cpu_tests::define;
using cpu_tests::make_random_problem;
using cpu_tests::Memory;
using cpu_tests::RandomProblem;
using cpu_tests::Reply;
using cpu_tests::ScoreProblem;

std::string text(const AttentionOp& op) { return to_string(AttentionProblem(op)); }

void expect_answer(const AttentionOp& op, const Reply& run) {
  const Answer expected = define(op);
  const double unit = 2e-5;
  for (std::size_t i = 0; i < run.out.size(); ++i) {
    const double e = expected.out[i];
    ASSERT_LE(std::fabs(e - run.out[i]), unit * (expected.largest_value + std::fabs(e)))
        << "out " << i << ": expected " << e << ", got " << run.out[i];
  }
  for (std::size_t i = 0; i < run.lse.size(); ++i) {
    const double e = expected.lse[i];
    ASSERT_TRUE(e == run.lse[i] || std::fabs(e - run.lse[i]) <= unit * (1 + std::fabs(e)))
        << "lse " << i << ": expected " << e << ", got " << run.lse[i];
  }
  for (std::size_t i = 0; i < run.codes.size(); ++i) {
    const double quotient = run.out[i] / value_at(op.output_scale, 0);
    ASSERT_EQ(run.codes[i], encode(DType::kF8E4M3FN, quotient, Overflow::kSaturate)) << i;
  }
}

constexpr std::uint64_t kProblems = 600;

TEST(CpuBackend, EqualsTheDefinition) {
  std::map<std::string, int> seen;  // nothing below may hold for want of problems
  for (std::uint64_t seed = 0; seed < kProblems; ++seed) {
    RandomProblem problem;
    make_random_problem(seed, 0xFF, problem);
    const AttentionOp& op = problem.op;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text(op));
    expect_answer(op, answer(op));
    if (HasFatalFailure()) return;
    const bool rows = op.num_tokens() > 0;
    seen["rows"] += rows;
    seen["empty batch"] += !rows;
    seen["rswa"] += rows && op.mask.rswa_window != 0;
    seen["ranges"] += rows && op.mask.mm_prefix_ranges.present();
    seen["clamped"] += rows && op.mask.mm_prefix_ranges.present() && op.mask.mm_prefix_clamp;
    seen["chunks"] += rows && op.mask.attention_chunk_size != 0;
    seen["sink tokens"] += rows && op.mask.sink_token_length != 0 && op.mask.window_left >= 0;
    seen["attn_mask"] += rows && op.mask.attn_mask.present();
    seen["attn_bias"] += rows && op.bias.attn_bias.present();
    seen["qq_bias"] += rows && op.bias.qq_bias.present();
    seen["cap"] += rows && op.logits_soft_cap != 0;
    seen["sinks"] += rows && op.sinks.present();
    seen["splits"] += rows && op.exec.num_splits > 1;
    seen["layout " + std::to_string(static_cast<int>(op.kv.layout))] += rows;
    seen["encoding " + std::to_string(static_cast<int>(op.kv.encoding))] += rows;
    seen["alibi " + std::to_string(static_cast<int>(op.bias.alibi_form))] += rows;
    seen["query " + std::string(name(op.query.dtype))] += rows;
    seen["key " + std::string(name(op.kv.key.dtype))] += rows;
  }
  EXPECT_EQ(seen.size(), 13u + 3 + 3 + 6 + 6 + 8);
  for (const auto& [what, count] : seen) EXPECT_GE(count, 10) << what;
}

TEST(CpuBackend, BitsDoNotDependOnThreadsBatchOrUnreadMemory) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    RandomProblem problem, other;
    make_random_problem(seed, 0xFF, problem);
    make_random_problem(seed, 0x00, other);
    const AttentionOp& op = problem.op;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text(op));
    const Reply one = answer(op);
    ASSERT_TRUE(one.same_bits(answer(other.op)));
    ASSERT_TRUE(one.same_bits(answer(op, 3, 0xFF)));
    ASSERT_TRUE(one.same_bits(answer(op, 8, 0x7F)));
    for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
      if (op.query_len(r) == 0) continue;
      const AttentionOp single = cpu_tests::alone(op, r, problem.memory);
      const Reply run = answer(single);
      const std::int64_t row = op.num_heads() * op.head_size_v();
      ASSERT_EQ(0, std::memcmp(run.out.data(), one.out.data() + op.query_start(r) * row,
                               run.out.size() * sizeof(float)));
      for (std::int64_t h = 0; h < op.num_heads(); ++h) {
        const float* whole = one.lse.data() + h * op.num_tokens() + op.query_start(r);
        ASSERT_EQ(0, std::memcmp(run.lse.data() + h * op.query_len(r), whole,
                                 static_cast<std::size_t>(op.query_len(r)) * sizeof(float)));
      }
    }
  }
  set_num_workers(1);
}

// A long causal prompt row by row: each row alone is a decode step over its own prefix.
TEST(CpuBackend, BitsOfARowDoNotDependOnItsNeighbours) {
  constexpr std::int64_t kRows = 300, kHeads = 4, kSize = 24;
  Memory memory;
  AttentionOp op;
  const auto fill = [&memory](const cpu_tests::Shape& shape, double step) {
    std::vector<double> values(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(step * double(i));
    return memory.list(DType::kF32, shape, values);
  };
  op.query = fill({kRows, kHeads, kSize}, 1.3);
  op.kv.key = fill({kRows, 2, kSize}, 2.1);
  op.kv.value = fill({kRows, 2, kSize}, 0.7);
  op.query_start_loc = op.kv.kv_start_loc = memory.list(DType::kI32, {2}, {0, kRows});
  op.seq_lens = memory.list(DType::kI32, {1}, {kRows});
  op.mask.causal = true;
  op.mask.window_left = 150;
  op.mask.sink_token_length = 3;
  const Reply whole = answer(op);
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(whole.same_bits(answer(op, 8)));
  for (std::int64_t row = 0; row < kRows; ++row) {
    AttentionOp one = op;
    const auto length = double(row + 1);
    one.query = slice(op.query, 0, row, 1);
    one.kv.key = slice(op.kv.key, 0, 0, row + 1);
    one.kv.value = slice(op.kv.value, 0, 0, row + 1);
    one.query_start_loc = memory.list(DType::kI32, {2}, {0, 1});
    one.kv.kv_start_loc = memory.list(DType::kI32, {2}, {0, length});
    one.seq_lens = memory.list(DType::kI32, {1}, {length});
    const Reply single = answer(one);
    ASSERT_EQ(0, std::memcmp(single.out.data(), whole.out.data() + row * kHeads * kSize,
                             single.out.size() * sizeof(float)))
        << "row " << row;
  }
  set_num_workers(1);
}

TEST(CpuBackend, KeysThatNoRowSeesDoNotChangeABit) {
  int poisoned = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomProblem problem;
    make_random_problem(seed, 0xFF, problem);
    const AttentionOp& op = problem.op;
    const Reply before = answer(op);
    for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
      for (std::int64_t k = 0; k < op.seq_len(r); ++k) {
        if (cpu_tests::seen_by_any_row(op, r, k)) continue;
        const KvSlot at = kv_slot(op.kv, r, k);
        for (const TensorView* side : {&op.kv.key, &op.kv.value}) {
          const int heads_axis = side->rank - 2;
          const std::byte* token = op.kv.paged() ? side->at(at.block, at.slot) : side->at(at.block);
          for (std::int64_t g = 0; g < side->shape[heads_axis]; ++g) {
            for (std::int64_t d = 0; d < side->shape[side->rank - 1]; ++d) {
              const std::int64_t offset =
                  g * side->stride_bytes[heads_axis] + d * side->stride_bytes[side->rank - 1];
              store_code(side->dtype, ~std::uint64_t{0}, const_cast<std::byte*>(token + offset));
            }
          }
        }
        ++poisoned;
      }
    }
    ASSERT_TRUE(before.same_bits(answer(op))) << "seed " << seed << ": " << text(op);
  }
  EXPECT_GT(poisoned, 1000);
}

TEST(CpuBackend, PartsAreReallyMergedAndReported) {
  RandomProblem problem;
  for (std::uint64_t seed = 0; problem.op.query.rank == 0 || problem.op.num_tokens() < 40; ++seed) {
    problem = {};
    make_random_problem(seed, 0, problem);
  }
  AttentionOp& op = problem.op;
  op.exec = {};
  const Reply whole = answer(op);
  EXPECT_EQ(whole.exec, ExecSpec{});
  bool any_bit_differs = false;
  for (const std::int64_t chunk : {1, 3, 64, 100}) {
    op.exec = {.kv_chunk = chunk, .common_prefix_len = 5, .has_common_prefix = true, .dcp_size = 2};
    const Reply parts = answer(op);
    EXPECT_EQ(parts.exec,
              (ExecSpec{.kv_chunk = chunk, .common_prefix_len = 5, .has_common_prefix = true}));
    expect_answer(op, parts);
    any_bit_differs = any_bit_differs || !parts.same_bits(whole);
  }
  EXPECT_TRUE(any_bit_differs);
}

TEST(CpuOutputs, StridesAreKeptAndGapsUntouched) {
  ScoreProblem scores({0, 0}, {1, 3}, 2);
  const AttentionProblem problem(scores.op);
  std::vector<float> memory(9, -7.0f);
  Outputs outputs;
  outputs.out = contiguous(memory.data(), DType::kF32, {2, 1, 1});
  outputs.out.stride_bytes[0] = 12;
  outputs.lse = contiguous(memory.data() + 5, DType::kF32, {1, 2});
  outputs.lse.stride_bytes[1] = 8;
  run_once(*make_cpu_backend(), problem, outputs);
  const auto ln2 = std::log(2.0f);
  EXPECT_EQ(memory, (std::vector<float>{2, -7, -7, 2, -7, ln2, -7, ln2, -7}));
}

TEST(CpuOutputs, WhatDoesNotFitIsRejectedBeforeAnythingIsWritten) {
  ScoreProblem scores({0, 0}, {1, 3}, 2), longer({0, 0, 0}, {1, 3, 1}, 2);
  const AttentionProblem problem(scores.op), other(longer.op);
  const auto backend = make_cpu_backend();
  alignas(kWorkspaceAlignment) static std::byte memory[1 << 17];
  set_num_workers(1);
  const auto plan = backend->prepare(problem, {memory, sizeof memory});
  std::vector<float> out(3, -7.0f), lse(2, -7.0f);
  Outputs outputs;
  outputs.out = contiguous(out.data(), DType::kF32, {2, 1, 1});
  outputs.lse = contiguous(lse.data(), DType::kF32, {1, 2});
  EXPECT_THROW(plan->run(other, outputs), Error);
  set_num_workers(2);
  EXPECT_THROW(plan->run(problem, outputs), Error);
  set_num_workers(1);
  outputs.lse_form.base = LseBase::k2;
  EXPECT_THROW(plan->run(problem, outputs), Error);
  outputs.lse_form = {};
  outputs.out = contiguous(out.data(), DType::kF32, {3, 1, 1});
  EXPECT_THROW(plan->run(problem, outputs), Error);
  EXPECT_EQ(out, std::vector<float>(3, -7.0f));
  EXPECT_EQ(lse, std::vector<float>(2, -7.0f));
  EXPECT_THROW(backend->prepare(problem, {memory, 64}), Error);
}

TEST(CpuCapabilities, Float64IsAReasonNotAnAnswer) {
  ScoreProblem scores({0}, {1});
  scores.op.query = scores.memory.list(DType::kF64, {1, 1, 1}, {1});
  EXPECT_EQ(make_cpu_backend()->supports(AttentionProblem(scores.op)),
            std::vector<std::string>{"query dtype f64 not supported"});
}

TEST(CpuContract, NamesTheMostPartsOfAnyRequest) {
  ScoreProblem scores(std::vector<double>(100, 0.0), std::vector<double>(100, 1.0));
  const auto overrides = [&] {
    const PrecisionContract contract = make_cpu_backend()->contract(AttentionProblem(scores.op));
    EXPECT_EQ(contract.name, "fp32");
    return nlohmann::json::parse(contract.overrides);
  };
  EXPECT_FALSE(overrides().contains("splits"));
  EXPECT_EQ(overrides()["dot"]["fused"], false);
  scores.op.exec = {.kv_chunk = 30, .common_prefix_len = 31, .has_common_prefix = true};
  EXPECT_EQ(overrides()["splits"], 5);  // [0,30) [30,31) [31,60) [60,90) [90,100)
  EXPECT_EQ(overrides()["merge"]["depth"], 4);
}

}  // namespace
}  // namespace attn
