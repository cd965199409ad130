// Errors planted into copies of a tensor: what the judge must see, and where.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attn/error.h"
#include "attn/verdict.h"
#include "core/special_values.h"
#include "tests/tensor_pool.h"

namespace attn {
namespace {

using At = std::vector<std::int64_t>;

class Tolerances : public testing::Test {
 protected:
  TensorView f64(const std::vector<double>& values) {
    return pool_.values(DType::kF64, {static_cast<std::int64_t>(values.size())}, values);
  }
  TensorComparison compare(const std::vector<double>& expected, const std::vector<double>& actual,
                           Tolerance tolerance = {.atol = 0.25}) {
    return compare_within("out", f64(expected), f64(actual), tolerance);
  }
  // One element each.
  Verdict verdict(double expected, double actual, Tolerance tolerance = {.atol = 0.25}) {
    return compare({expected}, {actual}, tolerance).verdict();
  }

  TensorPool pool_;
};

TEST(Verdicts, HaveNames) {
  EXPECT_EQ(name(Verdict::kPass), "pass");
  EXPECT_EQ(name(Verdict::kFail), "fail");
  EXPECT_EQ(name(Verdict::kSkipped), "skipped");
  EXPECT_EQ(name(Verdict::kMistrusted), "mistrusted");
}

TEST_F(Tolerances, EqualTensorsPassWithRatioZero) {
  const TensorComparison c = compare({1, -2, 3}, {1, -2, 3}, {});
  EXPECT_EQ(c.name, "out");
  EXPECT_EQ(c.verdict(), Verdict::kPass);
  EXPECT_EQ(c.elements, 3);
  EXPECT_EQ(c.over, 0);
  EXPECT_EQ(c.ratio, 0.0);
  EXPECT_TRUE(c.worst.at.empty());
}

TEST_F(Tolerances, ErrorOfEitherSignOnEitherSideOfZeroIsSeen) {
  for (const double expected : {5.0, -5.0, 0.0}) {
    for (const double error : {0.5, -0.5, 4.0, -4.0, 1e300, -1e300}) {
      EXPECT_EQ(verdict(expected, expected + error), Verdict::kFail) << expected << ' ' << error;
    }
    for (const double error : {0.25, -0.25, 0.125, 0.0}) {
      EXPECT_EQ(verdict(expected, expected + error), Verdict::kPass) << expected << ' ' << error;
    }
  }
}

// A ratio of the larger to the smaller value takes two negative values for equal.
TEST_F(Tolerances, TwoDifferentNegativeValuesDiffer) {
  EXPECT_EQ(verdict(-1.0, -5.0), Verdict::kFail);
  EXPECT_EQ(verdict(-5.0, -1.0), Verdict::kFail);
  EXPECT_EQ(verdict(-5.0, -1.0, {.rtol = 0.5}), Verdict::kFail);
}

TEST_F(Tolerances, TheBoundItselfIsAllowedAndTheNextNumberIsNot) {
  const Tolerance tolerance{.atol = 0.5, .rtol = 0.25};  // 1.5 at 4
  EXPECT_EQ(verdict(4.0, 5.5, tolerance), Verdict::kPass);
  EXPECT_EQ(verdict(4.0, 2.5, tolerance), Verdict::kPass);
  EXPECT_EQ(verdict(4.0, std::nextafter(5.5, 9.0), tolerance), Verdict::kFail);
  EXPECT_EQ(verdict(-4.0, std::nextafter(-2.5, 0.0), tolerance), Verdict::kFail);
}

TEST_F(Tolerances, RelativeToleranceIsOfTheExpectedValue) {
  const Tolerance tolerance{.rtol = 0.5};
  EXPECT_EQ(verdict(2.0, 3.0, tolerance), Verdict::kPass);
  EXPECT_EQ(verdict(-2.0, -3.0, tolerance), Verdict::kPass);
  EXPECT_EQ(verdict(2.0, 4.0, tolerance), Verdict::kFail);  // half of 4 would allow it
}

TEST_F(Tolerances, ZeroToleranceTakesEqualValuesOnly) {
  EXPECT_EQ(verdict(1.0, std::nextafter(1.0, 2.0), {}), Verdict::kFail);
  EXPECT_EQ(verdict(0.0, std::numeric_limits<double>::denorm_min(), {}), Verdict::kFail);
  EXPECT_EQ(compare({1.0}, {2.0}, {}).ratio, kInf);
}

TEST_F(Tolerances, ZerosOfBothSignsAreEqual) {
  EXPECT_EQ(verdict(0.0, -0.0, {}), Verdict::kPass);
  EXPECT_EQ(verdict(-0.0, 0.0, {}), Verdict::kPass);
}

TEST_F(Tolerances, SpecialsMatchInPlaceAndSign) {
  for (const double special : {kNaN, kInf, -kInf}) {
    EXPECT_EQ(verdict(special, special), Verdict::kPass);
    EXPECT_EQ(verdict(special, 1.0, {1e300, 1e300}), Verdict::kFail);
    EXPECT_EQ(verdict(1.0, special, {1e300, 1e300}), Verdict::kFail);
    EXPECT_EQ(verdict(special, -special, {1e300, 1e300}),
              std::isnan(special) ? Verdict::kPass : Verdict::kFail);
  }
  EXPECT_EQ(verdict(kNaN, kInf), Verdict::kFail);
  EXPECT_EQ(verdict(-kInf, kNaN), Verdict::kFail);
}

TEST_F(Tolerances, ASpecialThatDoesNotMatchHasInfiniteRatio) {
  for (const double special : {kNaN, kInf, -kInf}) {
    for (const bool is_expected : {true, false}) {
      const TensorComparison c =
          is_expected ? compare({1, special, 3}, {1, 2, 3}) : compare({1, 2, 3}, {1, special, 3});
      EXPECT_EQ(c.ratio, kInf) << special;
      EXPECT_EQ(c.over, 1) << special;
      EXPECT_EQ(c.worst.at, At{1}) << special;
      EXPECT_EQ(is_expected ? c.worst.actual : c.worst.expected, 2.0) << special;
    }
  }
}

TEST_F(Tolerances, AToleranceThatIsNoNumberAllowsNothing) {
  EXPECT_EQ(verdict(1.0, 1.5, {.atol = kNaN}), Verdict::kFail);
  EXPECT_EQ(verdict(1.0, 1.5, {.atol = -1.0}), Verdict::kFail);
}

TEST_F(Tolerances, ErrorInTheFirstAndTheLastElementIsFoundThere) {
  std::vector<double> values(24, 1.0);
  const std::vector<std::int64_t> shape = {2, 3, 4};
  const TensorView expected = pool_.values(DType::kF64, shape, values);
  for (const std::size_t at : {0u, 23u}) {
    std::vector<double> spoiled = values;
    spoiled[at] = 2.0;
    const TensorView actual = pool_.values(DType::kF64, shape, spoiled);
    const TensorComparison c = compare_within("out", expected, actual, {.atol = 0.5});
    EXPECT_EQ(c.over, 1);
    EXPECT_EQ(c.ratio, 2.0);
    EXPECT_EQ(c.worst.at, at == 0 ? (At{0, 0, 0}) : (At{1, 2, 3}));
    EXPECT_EQ(c.worst.expected, 1.0);
    EXPECT_EQ(c.worst.actual, 2.0);
    EXPECT_EQ(c.worst.bound, 0.5);
  }
}

TEST_F(Tolerances, WorstIsTheFirstElementWithTheLargestRatio) {
  const TensorComparison c = compare({1, 1, 1, 1}, {1.125, 2, 0, 1.5});
  EXPECT_EQ(c.over, 3);
  EXPECT_EQ(c.ratio, 4.0);
  EXPECT_EQ(c.worst.at, At{1});
}

TEST_F(Tolerances, WorstIsNotTheLargestErrorWhereMoreIsAllowed) {
  const TensorComparison c = compare({1000, 1}, {1010, 2}, {.rtol = 0.1});
  EXPECT_EQ(c.over, 1);
  EXPECT_EQ(c.worst.at, At{1});
  EXPECT_DOUBLE_EQ(c.ratio, 10.0);
}

TEST_F(Tolerances, ErrorsWithinToleranceAreReportedAsRatio) {
  const TensorComparison c = compare({1, 2}, {1, 2.125});
  EXPECT_EQ(c.verdict(), Verdict::kPass);
  EXPECT_EQ(c.ratio, 0.5);
  EXPECT_EQ(c.worst.at, At{1});
}

TEST_F(Tolerances, SwappedRowsAreSeen) {
  const TensorView a = pool_.values(DType::kF64, {2, 2}, {1, 2, 3, 4});
  const TensorView b = pool_.values(DType::kF64, {2, 2}, {3, 4, 1, 2});
  EXPECT_EQ(compare_within("out", a, b, {.atol = 0.25}).over, 4);
}

TEST_F(Tolerances, ATransposedSquareIsSeen) {
  const TensorView a = pool_.values(DType::kF64, {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(compare_within("out", a, swap_axes(a, 0, 1), {.atol = 0.25}).over, 2);
}

TEST_F(Tolerances, OtherShapesAreAnError) {
  const TensorView a = pool_.zeros(DType::kF64, {2, 3});
  const auto error_with = [&](const TensorView& b) -> std::string {
    try {
      compare_within("out", a, b, {});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_with(pool_.zeros(DType::kF64, {3, 2})),
            "out is f64[3,2], expected the shape of f64[2,3]");
  EXPECT_EQ(error_with(pool_.zeros(DType::kF64, {6})),
            "out is f64[6], expected the shape of f64[2,3]");
  EXPECT_EQ(error_with(TensorView{}), "out is absent, expected the shape of f64[2,3]");
}

TEST_F(Tolerances, IntegersAndPackedTypesAreAnError) {
  const TensorView f = pool_.zeros(DType::kF64, {2});
  for (const DType type : {DType::kI32, DType::kU8, DType::kF4E2M1}) {
    const TensorView other = pool_.zeros(type, {2});
    EXPECT_THROW(compare_within("out", f, other, {}), Error);
    EXPECT_THROW(compare_within("out", other, f, {}), Error);
  }
}

TEST_F(Tolerances, TypesMayDiffer) {
  const TensorView expected = pool_.values(DType::kF64, {3}, {1, -0.5, 1.0 / 3});
  const TensorView actual = pool_.values(DType::kBF16, {3}, {1, -0.5, 1.0 / 3});
  EXPECT_EQ(compare_within("out", expected, actual, {.rtol = 0x1p-8}).over, 0);
  EXPECT_EQ(compare_within("out", expected, actual, {.rtol = 0x1p-12}).over, 1);
}

TEST_F(Tolerances, StridesAreFollowed) {
  const TensorView rows = pool_.values(DType::kF64, {2, 4}, {1, 2, kNaN, kNaN, 3, 4, kNaN, kNaN});
  const TensorView expected = pool_.values(DType::kF64, {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(compare_within("out", expected, slice(rows, 1, 0, 2), {}).verdict(), Verdict::kPass);
  const TensorView turned = swap_axes(pool_.values(DType::kF64, {2, 2}, {1, 3, 2, 4}), 0, 1);
  EXPECT_EQ(compare_within("out", expected, turned, {}).verdict(), Verdict::kPass);
}

TEST_F(Tolerances, EmptyTensorsPass) {
  const TensorView nothing = pool_.zeros(DType::kF64, {0, 4});
  const TensorComparison c = compare_within("out", nothing, nothing, {});
  EXPECT_EQ(c.verdict(), Verdict::kPass);
  EXPECT_EQ(c.elements, 0);
}

// ---- codes

class Codes : public testing::Test {
 protected:
  TensorComparison compare(std::uint64_t expected, std::uint64_t actual, int neighbours) {
    const auto tensor = [&](std::uint64_t code) {
      return pool_.codes(DType::kF8E4M3FN, {1}, std::vector<std::uint64_t>{code});
    };
    return compare_codes("out_codes", tensor(expected), tensor(actual), neighbours);
  }
  bool pass(std::uint64_t expected, std::uint64_t actual, int neighbours) {
    return compare(expected, actual, neighbours).verdict() == Verdict::kPass;
  }

  TensorPool pool_;
};

TEST_F(Codes, EqualCodesPassWithoutNeighbours) {
  for (std::uint64_t code = 0; code < 256; ++code) EXPECT_TRUE(pass(code, code, 0)) << code;
}

TEST_F(Codes, NeighboursPassWhenAllowed) {
  for (std::uint64_t code = 0; code < 0x7E; ++code) {
    for (const std::uint64_t sign : {0x00u, 0x80u}) {
      EXPECT_FALSE(pass(sign + code, sign + code + 1, 0)) << code;
      EXPECT_TRUE(pass(sign + code, sign + code + 1, 1)) << code;
      EXPECT_TRUE(pass(sign + code + 1, sign + code, 1)) << code;
      EXPECT_EQ(pass(sign + code, sign + code + 2, 1), false) << code;
    }
  }
}

TEST_F(Codes, ZerosAreOneCodeAndNeighboursCountAcrossThem) {
  EXPECT_TRUE(pass(0x00, 0x80, 0));
  EXPECT_TRUE(pass(0x80, 0x01, 1));
  EXPECT_FALSE(pass(0x81, 0x01, 1));
  EXPECT_TRUE(pass(0x81, 0x01, 2));
}

TEST_F(Codes, TheOppositeSignIsFarAway) { EXPECT_FALSE(pass(0x38, 0xB8, 1)); }

TEST_F(Codes, NaNMatchesAnyNaNCodeAndNothingElse) {
  EXPECT_TRUE(pass(0x7F, 0xFF, 0));
  EXPECT_TRUE(pass(0xFF, 0x7F, 1));
  EXPECT_FALSE(pass(0x7F, 0x7E, 1)) << "the neighbouring code is 448";
  EXPECT_FALSE(pass(0xFE, 0xFF, 5));
  EXPECT_EQ(compare(0x7F, 0x7E, 1).ratio, kInf);
}

TEST_F(Codes, RatioIsTheDistanceOverWhatIsAllowed) {
  EXPECT_EQ(compare(0x10, 0x13, 2).ratio, 1.5);
  EXPECT_EQ(compare(0x10, 0x11, 0).ratio, kInf);
}

TEST_F(Codes, RawBytesAreTakenForCodes) {
  const TensorView codes = pool_.codes(DType::kF8E4M3FN, {2}, std::vector<std::uint64_t>{1, 2});
  const TensorView bytes = pool_.codes(DType::kU8, {2}, std::vector<std::uint64_t>{1, 3});
  EXPECT_EQ(compare_codes("out_codes", codes, bytes, 0).over, 1);
}

TEST_F(Codes, OtherTypesAndShapesAreAnError) {
  const TensorView codes = pool_.zeros(DType::kF8E4M3FN, {2});
  EXPECT_THROW(compare_codes("out_codes", codes, pool_.zeros(DType::kF8E5M2, {2}), 1), Error);
  EXPECT_THROW(compare_codes("out_codes", codes, pool_.zeros(DType::kU8, {3}), 1), Error);
}

}  // namespace
}  // namespace attn
