// Three evaluations that share no code give one answer: REFERENCE (gather, reduce, double),
// SECOND_REFERENCE (key by key, long double) and the exact one (MPFR, correctly rounded). REFERENCE
// honours the drawn exec, the others have none.
//
// Ten times max_success of RC_PARAMS problems in all, over the operations by the shares below:
// 2,000 as ctest runs it. The long run, with 100,000 problems and a summary of how much of the
// alarm any comparison needed:
//
//   RC_PARAMS="max_success=10000 max_size=100" attn_property_tests_run
//   --gtest_filter='References.*'
#include <fmt/core.h>

#include <cmath>
#include <iostream>

#include "attn/random.h"
#include "property_tests/draw_problem.h"
#include "property_tests/drift_alarm.h"
#include "property_tests/judged_tensors.h"
#include "property_tests/operation_property.h"
#include "property_tests/problem_data.h"
#include "property_tests/random_element.h"

namespace attn::property_tests {
namespace {

// Multiplications beyond which the exact evaluation would take too long.
constexpr double kMostExactWork = 300000.0;

double rows_times_keys(const TensorView& query_start_loc, const TensorView& seq_lens) {
  double pairs = 0.0;
  for (std::int64_t r = 0; r < seq_lens.shape[0]; ++r) {
    pairs += static_cast<double>((int_at(query_start_loc, r + 1) - int_at(query_start_loc, r)) *
                                 int_at(seq_lens, r));
  }
  return pairs;
}

// About how many multiplications an answer takes.
struct Work {
  double operator()(const AttentionOp& op) const {
    return rows_times_keys(op.query_start_loc, op.seq_lens) *
           static_cast<double>(op.num_heads() * (op.head_size() + op.head_size_v()));
  }
  double operator()(const DifferentialOp& op) const { return 2.0 * (*this)(op.attention); }
  double operator()(const MlaOp& op) const {
    const std::int64_t columns =
        op.form == MlaForm::kExpanded ? op.qk_nope_head_dim + op.w_uv.shape[2] : 2;
    return rows_times_keys(op.query_start_loc, op.seq_lens) *
           static_cast<double>(op.query.shape[1] *
                               (op.kv_lora_rank * columns + op.qk_rope_head_dim));
  }
  double operator()(const MlaSparseOp& op) const {
    return static_cast<double>(op.topk_indices.num_units() * op.mla.query.shape[1] *
                               (2 * op.mla.kv_lora_rank + op.mla.qk_rope_head_dim));
  }
  template <class Other>
  double operator()(const Other&) const {
    return 0.0;
  }
};

struct Counts {
  int problems = 0;
  int exact = 0;  // of them small enough for the exact evaluation
};

// Within the sum of both certified bounds: of REFERENCE, whose sums `first` holds, and of another.
void expect_within_bounds(std::string_view claim, const AttentionProblem& problem,
                          const Tensors& first, const Tensors& other,
                          const PrecisionContract& contract) {
  const Judgement judgement =
      judge_tensors(problem, first, reference_backend().contract(problem), other, contract);
  require(judgement.verdict != Verdict::kFail, fmt::format("{}: {}", claim, judgement.reason));
}

void expect_agreement(const Operation& operation, Counts& counts) {
  ++counts.problems;
  const Tensors first = answer_operation(reference_backend(), operation, true);
  const Tensors second = answer_operation(second_reference_backend(), operation);
  const DriftAlarm alarm(operation, first);
  require_none("REFERENCE and SECOND_REFERENCE", alarm.difference(first, second));
  const AttentionProblem problem(operation);
  expect_within_bounds("REFERENCE and SECOND_REFERENCE", problem, first, second,
                       second_reference_backend().contract(problem));
  if (std::visit(Work(), operation) > kMostExactWork) return;
  ++counts.exact;
  const Tensors exact = answer_operation_exactly(operation);
  require_none("REFERENCE and the exact answer", alarm.difference(first, exact));
  expect_within_bounds("REFERENCE and the exact answer", problem, first, exact, {"f64"});
  require_none("SECOND_REFERENCE and the exact answer", alarm.difference(second, exact));
  require_none("sums of REFERENCE and exact ones", alarm.sums_difference(first, exact));
}

void add_specials(std::uint64_t seed, std::uint64_t which, HostTensor& tensor) {
  if (!is_floating(tensor.dtype()) || elements_per_unit(tensor.dtype()) != 1) return;
  for (std::int64_t i = 0; i < tensor.num_units(); ++i) {
    const Words words = random_words(seed, static_cast<std::uint64_t>(i), RandomTensor::kNeedle,
                                     static_cast<std::uint32_t>(which));
    if (!is_special(words)) continue;
    tensor.set_code(i, encode(tensor.dtype(), special_value(words), Overflow::kInfinity));
  }
}

// Infinities and NaN in one problem of eight.
LogicalProblem draw_with_specials(const ProblemConfig& config) {
  LogicalProblem problem = draw_problem(config);
  if (config.seed % 8 != 0) return problem;
  std::uint64_t which = 0;
  for (LogicalRequest& request : problem.requests) {
    for (HostTensor* tensor : {&request.query, &request.key, &request.value}) {
      add_specials(config.seed, which++, *tensor);
    }
  }
  return problem;
}

template <class Config>
Counts expect_agreement_on(int percent) {
  Counts counts;
  for_all<Config>(
      [&](const Config& config) { expect_agreement(draw_operation(config).operation, counts); },
      percent);
  return counts;
}

template <>
Counts expect_agreement_on<ProblemConfig>(int percent) {
  Counts counts;
  for_all<ProblemConfig>(
      [&](const ProblemConfig& config) {
        const ProblemData data(draw_with_specials(config), config.memory);
        expect_agreement(data.op(), counts);
      },
      percent);
  return counts;
}

template <>
Counts expect_agreement_on<DifferentialConfig>(int percent) {
  Counts counts;
  for_all<DifferentialConfig>(
      [&](const DifferentialConfig& config) {
        const ProblemData data(draw_paired_heads(config), config.attention.memory);
        expect_agreement(draw_difference(config, data.op()).operation, counts);
      },
      percent);
  return counts;
}

// The shares add up to 1000 percent.
Counts expect_agreement_on(OpKind kind) {
  switch (kind) {
    case OpKind::kAttention:
      return expect_agreement_on<ProblemConfig>(500);
    case OpKind::kDifferential:
      return expect_agreement_on<DifferentialConfig>(80);
    case OpKind::kMla:
      return expect_agreement_on<LatentConfig>(130);
    case OpKind::kMlaSparse:
      return expect_agreement_on<SparseConfig>(100);
    case OpKind::kIndexer:
      return expect_agreement_on<IndexerConfig>(50);
    case OpKind::kMergeStates:
      return expect_agreement_on<MergeConfig>(70);
    case OpKind::kCacheWrite:
      return expect_agreement_on<CacheWriteConfig>(50);
    case OpKind::kMlaCacheWrite:
      return expect_agreement_on<LatentWriteConfig>(20);
  }
  return {};
}

class References : public testing::TestWithParam<OpKind> {};

INSTANTIATE_TEST_SUITE_P(, References, testing::ValuesIn(kAllOpKinds),
                         [](const auto& kind) { return std::string(name(kind.param)); });

TEST_P(References, AgreeOnEveryOperation) {
  const Counts counts = expect_agreement_on(GetParam());
  std::cout << fmt::format("{}: {} problems, {} of them answered exactly too\n{}", name(GetParam()),
                           counts.problems, counts.exact, largest_drifts());
  // Most problems are small enough for all three.
  EXPECT_GE(4 * counts.exact, 3 * counts.problems);
}

}  // namespace
}  // namespace attn::property_tests
