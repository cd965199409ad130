// What must not change a single bit: where things lie in memory, who else is in the batch, what
// memory held before.
#include <fmt/core.h>

#include <algorithm>

#include "property_tests/draw_problem.h"
#include "property_tests/logical_edits.h"
#include "property_tests/problem_data.h"
#include "property_tests/property.h"
#include "tests/scoped_workers.h"

namespace attn::property_tests {
namespace {

class Invariance : public PropertyTest {
 protected:
  // Everything that a problem can have, exec too.
  static ConfigSpace everything() {
    ConfigSpace space;
    space.exec = true;
    space.output_codes = true;
    return space;
  }

  // The answer in the config's form and in another one have the same bits.
  void expect_same_bits(const ProblemConfig& config, const MemoryForm& other) const {
    const LogicalProblem problem = draw_problem(config);
    expect_none("two memory forms",
                bit_difference(answer(problem, config.memory), answer(problem, other)));
  }
};

INSTANTIATE_TEST_SUITE_P(, Invariance, testing::ValuesIn(backends_under_test()), backend_name);

TEST_P(Invariance, OrderOfPhysicalBlocksKeepsEveryBit) {
  for_all(everything(), [&](const ProblemConfig& config) {
    MemoryForm other = config.memory;
    other.block_order = config.seed | 1;
    other.spare_blocks += 2;
    expect_same_bits(config, other);
  });
}

TEST_P(Invariance, LayoutAndBlockSizeKeepEveryBit) {
  ConfigSpace space = everything();
  space.kv = {KvFormat::kF32, KvFormat::kBF16, KvFormat::kF8E5M2};  // those of every layout
  for_all(space, [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    const Answer usual = answer(problem, config.memory);
    for (const CacheForm cache : {CacheForm::kVarlen, CacheForm::kPagedNHD, CacheForm::kPagedHND,
                                  CacheForm::kPackedNHD, CacheForm::kPackedHND}) {
      MemoryForm form = config.memory;
      form.cache = cache;
      form.block_size = cache == CacheForm::kVarlen ? 1 : 5;
      expect_none(fmt::format("cache form {}", static_cast<int>(cache)),
                  bit_difference(usual, answer(problem, form)));
    }
  });
}

TEST_P(Invariance, MemoryOutsideLiveSlotsNeverEntersTheAnswer) {
  for_all(everything(), [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    MemoryForm form = config.memory;
    form.fill = Fill::kZero;
    const Answer clean = answer(problem, form);
    for (const Fill fill :
         {Fill::kNaN, Fill::kPlusInfinity, Fill::kMinusInfinity, Fill::kLargest}) {
      form.fill = fill;
      expect_none(fmt::format("fill {}", static_cast<int>(fill)),
                  bit_difference(clean, answer(problem, form)));
    }
  });
}

TEST_P(Invariance, PaddingOfTensorsAndTableKeepsEveryBit) {
  for_all(everything(), [&](const ProblemConfig& config) {
    MemoryForm other = config.memory;
    other.table_padding += 3;
    other.row_padding += 2;
    other.dim_padding += 1;
    other.column_padding += 4;
    expect_same_bits(config, other);
  });
}

TEST_P(Invariance, RequestAloneHasTheBitsItHasInTheBatch) {
  if (!backend().capabilities().batch_invariant) GTEST_SKIP() << "not promised";
  for_all(everything(), [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    const Answer batch = answer(problem, config.memory);
    for (std::int64_t r = 0; r < config.num_reqs; ++r) {
      const Answer alone = answer(request_alone(problem, r), config.memory);
      expect_none(fmt::format("request {} in the batch and alone", r),
                  bit_difference(batch, problem.first_token(r), alone, 0, alone.num_tokens));
    }
  });
}

TEST_P(Invariance, OrderOfRequestsKeepsEveryBit) {
  if (!backend().capabilities().batch_invariant) GTEST_SKIP() << "not promised";
  ConfigSpace space = everything();
  space.attn_mask = false;  // these tensors follow the order of requests
  turn_off(space.attn_bias);
  turn_off(space.scales);
  for_all(space, [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    LogicalProblem reversed = problem;
    std::reverse(reversed.requests.begin(), reversed.requests.end());
    const Answer forwards = answer(problem, config.memory);
    const Answer backwards = answer(reversed, config.memory);
    for (std::int64_t r = 0; r < config.num_reqs; ++r) {
      const std::int64_t mirrored = config.num_reqs - 1 - r;
      expect_none(fmt::format("request {} in both orders", r),
                  bit_difference(forwards, problem.first_token(r), backwards,
                                 reversed.first_token(mirrored), problem.request(r).query_len()));
    }
  });
}

TEST_P(Invariance, WhatOutputsAndWorkspaceHeldBeforeKeepsEveryBit) {
  for_all(everything(), [&](const ProblemConfig& config) {
    const ProblemData data(draw_problem(config), config.memory);
    const Answer usual = property_tests::answer(backend(), data.op());
    for (const int content : {0x00, 0x7F}) {
      Circumstances other;
      other.outputs_before = static_cast<std::uint8_t>(content);
      other.workspace_before = other.outputs_before;
      expect_none("two contents of outputs and workspace",
                  bit_difference(usual, property_tests::answer(backend(), data.op(), other)));
    }
  });
}

TEST_P(Invariance, PlanAnswersOtherDataOfItsShapesLikeAFreshOne) {
  ConfigSpace space = everything();
  space.lengths = {Lengths::kEqual};
  std::erase_if(space.masks, [](MaskKind mask) {  // the number of ranges is drawn with the data
    return mask == MaskKind::kRanges || mask == MaskKind::kRangesWindow ||
           mask == MaskKind::kRangesClamped;
  });
  for_all(space, [&](const ProblemConfig& config) {
    ProblemConfig other = config;
    other.seed ^= 1;
    const ProblemData planned(draw_problem(config), config.memory);
    const ProblemData data(draw_problem(other), config.memory);
    Circumstances circumstances;
    circumstances.prepared_for = &planned.op();
    const Answer fresh = property_tests::answer(backend(), data.op());
    for (const bool ran_before : {false, true}) {
      circumstances.ran_before = ran_before;
      expect_none(
          "a plan made for other data and one made for these",
          bit_difference(property_tests::answer(backend(), data.op(), circumstances), fresh));
    }
  });
}

TEST_P(Invariance, GapsOfOutputsKeepEveryBitAndStayUntouched) {
  for_all(everything(), [&](const ProblemConfig& config) {
    const ProblemData data(draw_problem(config), config.memory);
    Circumstances gaps;
    gaps.output_gap = 1 + draw_below(config.seed, 0, 5);
    expect_none("dense outputs and outputs with gaps",
                bit_difference(property_tests::answer(backend(), data.op()),
                               property_tests::answer(backend(), data.op(), gaps)));
  });
}

TEST_P(Invariance, OutputAloneHasTheBitsItHasWithTheOthers) {
  for_all(everything(), [&](const ProblemConfig& config) {
    const ProblemData data(draw_problem(config), config.memory);
    const Answer all = property_tests::answer(backend(), data.op());
    for (int only = 0; only < 3; ++only) {
      Circumstances one;
      one.with_out = only == 0;
      one.with_lse = only == 1;
      one.with_codes = only == 2;
      Answer alone = property_tests::answer(backend(), data.op(), one);
      if (!one.with_out) alone.out = all.out;
      if (!one.with_lse) alone.lse = all.lse;
      if (!one.with_codes) alone.codes = all.codes;
      expect_none(fmt::format("all outputs and number {} of them", only),
                  bit_difference(all, alone));
    }
  });
}

TEST_P(Invariance, NumberOfWorkersKeepsEveryBit) {
  for_all(everything(), [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    const Answer one = answer(problem, config.memory);
    const ScopedWorkers three(3);
    expect_none("one worker and three", bit_difference(one, answer(problem, config.memory)));
  });
}

}  // namespace
}  // namespace attn::property_tests
