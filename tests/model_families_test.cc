// Adversarial families: valid, repeatable, and each what its name says.
#include "property_tests/model_families.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "attn/conditioning.h"
#include "attn/problem.h"
#include "attn/reference.h"
#include "property_tests/operation_answer.h"

namespace attn::property_tests {
namespace {

constexpr std::uint64_t kSeeds = 60;

TEST(ModelFamilies, AreValidAndHaveFiniteAnswers) {
  std::set<std::string, std::less<>> names;
  const auto reference = make_reference_backend();
  for (const ModelFamily family : all_model_families()) {
    SCOPED_TRACE(name(family));
    EXPECT_TRUE(names.emplace(name(family)).second);
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const DrawnOperation drawn = draw_family(family, seed);
      const Tensors answer = answer_operation(*reference, drawn.operation);
      const HostTensor& out = answer.find("out")->second;
      for (std::int64_t i = 0; i < out.num_units(); ++i) {
        ASSERT_TRUE(std::isfinite(decode(out.dtype(), out.code(i)))) << "seed " << seed;
      }
    }
  }
}

TEST(ModelFamilies, AreFunctionsOfTheirSeed) {
  for (const ModelFamily family : all_model_families()) {
    const DrawnOperation a = draw_family(family, 7);
    const DrawnOperation b = draw_family(family, 7);
    const DrawnOperation c = draw_family(family, 8);
    EXPECT_EQ(to_string(AttentionProblem(a.operation)), to_string(AttentionProblem(b.operation)));
    const auto reference = make_reference_backend();
    const Tensors of_a = answer_operation(*reference, a.operation);
    EXPECT_EQ(bit_difference(of_a, answer_operation(*reference, b.operation)), "");
    EXPECT_NE(bit_difference(of_a, answer_operation(*reference, c.operation)), "");
  }
}

// A field of the conditioning sums in some row of some seed.
bool some_row(ModelFamily family, const std::function<bool(const double* row)>& holds) {
  const auto reference = make_reference_backend();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const DrawnOperation drawn = draw_family(family, seed);
    const Tensors answer = answer_operation(*reference, drawn.operation, true);
    const HostTensor& rows = answer.find("cond_row")->second;
    const auto* fields = reinterpret_cast<const double*>(rows.bytes().data());
    for (std::int64_t i = 0; i < rows.num_units(); i += kNumRowFields) {
      if (holds(fields + i)) return true;
    }
  }
  return false;
}

TEST(ModelFamilies, AreWhatTheirNamesSay) {
  using F = ModelFamily;
  const auto holds = [](F family, const std::function<bool(const double*)>& what) {
    return some_row(family, what);
  };
  EXPECT_TRUE(holds(F::kLargeLogits, [](const double* r) { return r[kRowMax] > 100.0; }));
  EXPECT_TRUE(holds(F::kNeedle, [](const double* r) {
    return r[kRowDMax] > 20.0 && r[kRowVisible] > 30 && r[kRowPd] < 1e-6;
  }));
  EXPECT_TRUE(holds(F::kCancellingScores, [](const double* r) {
    return r[kRowAMax] > 50.0 * (std::fabs(r[kRowMax]) + r[kRowDMax]);
  }));
  EXPECT_TRUE(holds(F::kEqualKeys,
                    [](const double* r) { return r[kRowVisible] > 10 && r[kRowDMax] == 0.0; }));
  EXPECT_TRUE(holds(F::kRamp, [](const double* r) { return r[kRowDMax] > 100.0; }));
  EXPECT_TRUE(holds(F::kSubnormals, [](const double* r) {
    return r[kRowValueMax] > 0.0 && r[kRowValueMax] < 0x1p-120;
  }));
  EXPECT_TRUE(holds(F::kWideValues, [](const double* r) { return r[kRowValueMax] > 1e4; }));
  EXPECT_TRUE(holds(F::kFewKeys, [](const double* r) { return r[kRowVisible] == 1.0; }));
  EXPECT_TRUE(holds(F::kRandomMask, [](const double* r) { return r[kRowVisible] == 0.0; }));
  EXPECT_TRUE(holds(F::kAlibi, [](const double* r) { return r[kRowBiasMax] > 100.0; }));
  EXPECT_TRUE(holds(F::kCancellingBiases, [](const double* r) {
    return r[kRowBiasMax] > 500.0 && std::fabs(r[kRowMax]) < 10.0;
  }));
  EXPECT_TRUE(holds(F::kSink, [](const double* r) { return r[kRowMax] > r[kRowKeysMax] + 50.0; }));
  EXPECT_TRUE(holds(F::kSink, [](const double* r) {
    return r[kRowDMax] > 50.0 && r[kRowMax] == r[kRowKeysMax];
  }));
  EXPECT_TRUE(holds(F::kLargeMaximum, [](const double* r) {
    return std::fabs(r[kRowMax]) > 900.0 && r[kRowVisible] > 10 && r[kRowDMax] < 10.0;
  }));
  EXPECT_TRUE(holds(F::kOneKeyPerTile, [](const double* r) {
    return r[kRowVisible] >= 2 && r[kRowSpan] > 15 * r[kRowVisible];
  }));
  EXPECT_TRUE(holds(F::kHugeQuery, [](const double* r) {
    return r[kRowQueryMax] > 0x1p90 && r[kRowKeyMax] < 0x1p-126;
  }));
}

}  // namespace
}  // namespace attn::property_tests
