// The answer is what the definition says; every backend agrees with the reference.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "attn/error.h"
#include "property_tests/definition.h"
#include "property_tests/draw_problem.h"
#include "property_tests/problem_data.h"
#include "property_tests/property.h"
#include "property_tests/rounding.h"

namespace attn::property_tests {
namespace {

class Definition : public PropertyTest {
 protected:
  void expect_formula(const ConfigSpace& space) const {
    for_all(space, [&](const ProblemConfig& config) {
      const LogicalProblem problem = draw_problem(config);
      const Answer computed = answer(problem, config.memory);
      expect_none("the backend and the formula",
                  difference(computed, answer_by_definition(problem),
                             rounding_bound(problem, computed.dtype)));
    });
  }
};

INSTANTIATE_TEST_SUITE_P(, Definition, testing::ValuesIn(backends_under_test()), backend_name);

TEST_P(Definition, EverythingTogetherIsThatOfTheFormula) {
  ConfigSpace space;
  space.exec = true;
  space.families = {Family::kUniform,     Family::kBell,      Family::kNegativeLogits,
                    Family::kLargeLogits, Family::kExactLane, Family::kAllCodes};
  expect_formula(space);
}

TEST_P(Definition, EveryMaskIsThatOfTheFormula) { expect_formula(masks_only(Family::kBell)); }

TEST_P(Definition, EveryBiasIsThatOfTheFormula) {
  ConfigSpace space = masks_only(Family::kUniform);
  space.masks = {MaskKind::kCausal, MaskKind::kNone, MaskKind::kSymmetricWindow};
  space.alibi = {AlibiForm::kRow, AlibiForm::kContext, AlibiForm::kZero, AlibiForm::kAbs,
                 AlibiForm::kSqrt};
  space.attn_bias = {BiasKind::kNone, BiasKind::kFinite, BiasKind::kSomeMasked};
  space.soft_cap = true;
  space.tree = true;
  expect_formula(space);
}

TEST_P(Definition, EverySinkIsThatOfTheFormula) {
  ConfigSpace space = masks_only(Family::kUniform);
  space.sinks = {SinkKind::kFinite, SinkKind::kSomeMinusInfinity};
  space.soft_cap = true;
  space.exec = true;
  expect_formula(space);
}

TEST_P(Definition, EveryCacheFormatAndScaleIsThatOfTheFormula) {
  ConfigSpace space = masks_only(Family::kBell);
  space.families = {Family::kBell, Family::kAllCodes};
  space.masks = {MaskKind::kCausal, MaskKind::kNone};
  space.kv = ConfigSpace().kv;
  space.query_dtypes = ConfigSpace().query_dtypes;
  space.scales = {ScaleShape::kOne, ScaleShape::kPerHead, ScaleShape::kPerRequestHead};
  expect_formula(space);
}

// A float64 backend rounds the quotient once. Another may have more digits of out than it writes,
// or fewer of the quotient: any code between those of a quotient 2^-20 off is as near.
TEST_P(Definition, OutputCodesAreTheNearestOfOutOverTheScale) {
  ConfigSpace space;
  space.output_codes = true;
  space.exec = true;
  for_all(space, [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    if (!problem.output_scale.present()) return;
    const Answer computed = answer(problem, config.memory);
    const double scale = problem.output_scale.value(0);
    const double off = computed.dtype == DType::kF64 ? 0.0 : 0x1p-20;
    const auto nearest = [&](double x) {
      return encode(DType::kF8E4M3FN, x / scale, Overflow::kSaturate);
    };
    for (std::size_t i = 0; i < computed.out.size(); ++i) {
      const auto ordered = [](std::uint64_t code) {  // -448 ... 448 as consecutive integers
        return (code & 0x80) != 0 ? -static_cast<int>(code & 0x7F) : static_cast<int>(code);
      };
      const int less = ordered(nearest(computed.out[i] * (1.0 - off)));
      const int more = ordered(nearest(computed.out[i] * (1.0 + off)));
      const int code = ordered(computed.codes[i]);
      expect_that(std::min(less, more) <= code && code <= std::max(less, more),
                  fmt::format("code {:#x} for {} / {}", computed.codes[i], computed.out[i], scale));
    }
  });
}

// Families of normal size, where a fixed tolerance says something: 2e-5 of the largest value and of
// the answer (float32 has 6e-8; at most 280 keys and 144 dims add up).
TEST_P(Definition, BackendAgreesWithTheReferenceWithinAFixedTolerance) {
  ConfigSpace space;
  turn_off(space.scales);
  space.exec = true;
  space.kv = {KvFormat::kF32, KvFormat::kBF16, KvFormat::kF16, KvFormat::kF8E4M3FN,
              KvFormat::kInt8PerTokenHead};
  for_all(space, [&](const ProblemConfig& config) {
    const ProblemData data(draw_problem(config), config.memory);
    const Answer expected = property_tests::answer(backend_under_test("REFERENCE"), data.op());
    const Answer actual = property_tests::answer(backend(), data.op());
    const double vmax = largest_value(draw_problem(config));
    for (std::size_t i = 0; i < expected.out.size(); ++i) {
      const double allowed = 2e-5 * (vmax + std::fabs(expected.out[i]));
      expect_that(
          std::fabs(actual.out[i] - expected.out[i]) <= allowed,
          fmt::format("out[{}] is {}, the reference says {}", i, actual.out[i], expected.out[i]));
    }
    for (std::size_t i = 0; i < expected.lse.size(); ++i) {
      const double allowed = 2e-5 * (1.0 + std::fabs(expected.lse[i]));
      expect_that(
          actual.lse[i] == expected.lse[i] || std::fabs(actual.lse[i] - expected.lse[i]) <= allowed,
          fmt::format("lse[{}] is {}, the reference says {}", i, actual.lse[i], expected.lse[i]));
    }
  });
}

TEST_P(Definition, BadBlockIdsInLiveColumnsAreRejected) {
  ConfigSpace space;
  for_all(space, [&](const ProblemConfig& config) {
    const ProblemData data(draw_problem(config), config.memory);
    AttentionOp op = data.op();
    if (!op.kv.paged()) return;
    for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
      if (op.seq_len(r) == 0) continue;
      const std::int64_t width = op.kv.block_table.shape[1];
      for (const std::int64_t bad :
           {std::int64_t{-1}, op.kv.key.shape[0], std::int64_t{2147480000}}) {
        HostTensor table(DType::kI32, {op.num_reqs(), width});
        for (std::int64_t i = 0; i < op.num_reqs() * width; ++i) {
          table.set(static_cast<double>(int_at(data.op().kv.block_table, i / width, i % width)),
                    i / width, i % width);
        }
        table.set(static_cast<double>(bad), r, (op.seq_len(r) - 1) / op.kv.block_size());
        op.kv.block_table = std::as_const(table).view();
        RC_ASSERT_THROWS_AS(property_tests::answer(backend(), op), attn::Error);
      }
    }
  });
}

TEST_P(Definition, HeadsThatAreNoMultipleOfTheKvHeadsAreRejected) {
  for_all(ConfigSpace(), [&](const ProblemConfig& config) {
    const ProblemData data(draw_problem(config), config.memory);
    AttentionOp op = data.op();
    op.query = slice(op.query, 1, 0, op.num_heads() - 1);
    if (op.num_heads() % op.num_kv_heads() == 0 && op.num_heads() > 0) return;
    RC_ASSERT_THROWS_AS(property_tests::answer(backend(), op), attn::Error);
  });
}

}  // namespace
}  // namespace attn::property_tests
