// Errors planted into right answers: every gate, and what it says.
#include "attn/judgement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "attn/error.h"
#include "core/special_values.h"
#include "tests/judged_answer.h"

namespace attn {
namespace {

using At = std::vector<std::int64_t>;

class Judging : public testing::Test {
 protected:
  // Fails `gate` with `actual` at out[token, head, j].
  void expect_fault(double actual, std::int64_t token, std::int64_t head, std::int64_t j,
                    Gate gate) {
    JudgedAnswer planted(drawn_.op, DType::kF64);
    planted.actual["out"].set(actual, token, head, j);
    const Judgement judgement = planted.judge();
    EXPECT_EQ(judgement.verdict, Verdict::kFail) << actual;
    ASSERT_TRUE(judgement.gate.has_value());
    EXPECT_EQ(*judgement.gate, gate) << judgement.reason;
    EXPECT_EQ(comparison(judgement, "out").over, 1);
    EXPECT_EQ(comparison(judgement, "out").worst.at, (At{token, head, j}));
  }

  DrawnProblem drawn_;
};

TEST(Gates, HaveNamesInTheirOrder) {
  EXPECT_EQ(name(Gate::kCanary), "canary");
  EXPECT_EQ(name(Gate::kNonfinite), "nonfinite");
  EXPECT_EQ(name(Gate::kEmptyRows), "empty_rows");
  EXPECT_EQ(name(Gate::kExact), "exact");
  EXPECT_EQ(name(Gate::kHull), "hull");
  EXPECT_EQ(name(Gate::kBound), "bound");
  EXPECT_EQ(name(Gate::kStrict), "strict");
}

TEST_F(Judging, TheReferenceRoundedPassesInEveryStoredType) {
  const std::pair<DType, const char*> cases[] = {{DType::kF64, "f64"},
                                                 {DType::kF32, "fp32"},
                                                 {DType::kF16, "f16_flash"},
                                                 {DType::kBF16, "bf16_flash"}};
  for (const auto& [stored, contract] : cases) {
    const Judgement judgement = JudgedAnswer(drawn_.op, stored, contract).judge();
    EXPECT_EQ(judgement.verdict, Verdict::kPass) << judgement.reason;
    EXPECT_FALSE(judgement.gate.has_value());
    EXPECT_EQ(judgement.rows, 10);
    EXPECT_EQ(judgement.vacuous_rows, 0);
    EXPECT_FALSE(judgement.strict.has_value());
    ASSERT_EQ(judgement.tensors.size(), 2u);
    EXPECT_LT(comparison(judgement, "out").ratio, 1.0);
    EXPECT_EQ(comparison(judgement, "out").elements, 5 * 2 * 130);
    EXPECT_EQ(comparison(judgement, "lse").elements, 10);
  }
}

TEST_F(Judging, AnErrorJustBeyondTheAllowedIsSeenAnywhereAndOfEitherSign) {
  const double bound = 0x1p-10;
  const double allowed = bound * (1.0 + 0x1p-20);
  JudgedAnswer answer(drawn_.op, DType::kF64);
  const HostTensor right = answer.actual["out"];
  const FakeBounds bounds(bound);
  for (const std::int64_t token : {0, 2, 4}) {
    for (const std::int64_t j : {0, 1, 63, 64, 127, 128, 129}) {
      for (const double sign : {1.0, -1.0}) {
        const std::int64_t head = j % 2;
        const double value = right.value(token, head, j);
        answer.actual["out"] = right;
        answer.actual["out"].set(value + sign * allowed * 0.9999999, token, head, j);
        Judgement judgement = answer.judge(bounds);
        EXPECT_EQ(judgement.verdict, Verdict::kPass) << token << ' ' << j;
        EXPECT_NEAR(comparison(judgement, "out").ratio, 1.0, 1e-6);
        EXPECT_EQ(comparison(judgement, "out").worst.at, (At{token, head, j}));
        answer.actual["out"].set(value + sign * allowed * 1.0000001, token, head, j);
        judgement = answer.judge(bounds);
        EXPECT_EQ(judgement.verdict, Verdict::kFail) << token << ' ' << j;
        EXPECT_EQ(judgement.gate, Gate::kBound);
        EXPECT_EQ(comparison(judgement, "out").over, 1);
        EXPECT_EQ(comparison(judgement, "out").worst.at, (At{token, head, j}));
        EXPECT_EQ(comparison(judgement, "out").worst.bound, allowed);
      }
    }
  }
}

TEST_F(Judging, TheReasonNamesTheWorstElementAndItsRatio) {
  JudgedAnswer answer(drawn_.op, DType::kF64);
  const double value = answer.expected["out"].value(3, 1, 7);
  answer.actual["out"].set(value + 4.125, 3, 1, 7);
  answer.actual["out"].set(answer.expected["out"].value(0, 0, 0) + 2.0, 0, 0, 0);
  const Judgement judgement = answer.judge(FakeBounds(1.0));
  EXPECT_EQ(judgement.reason, "out[3,1,7] is off by 4.12 times its bound");
  EXPECT_EQ(comparison(judgement, "out").over, 2);
  EXPECT_EQ(comparison(judgement, "out").worst.expected, value);
  EXPECT_EQ(comparison(judgement, "out").worst.actual, value + 4.125);
}

TEST_F(Judging, WhatIsAllowedIsTheCertifiedBoundAndTheExpectationsOwn) {
  JudgedAnswer answer(drawn_.op, DType::kF64);
  const ExpectedAnswer expected = answer.expected_answer();
  std::vector<double> bound(130), own(130);
  ErrorBound(answer.problem, with_stored_type(resolve({"fp32"}), DType::kF64))
      .row(expected.expectation, 2, 1, bound);
  ErrorBound(answer.problem, with_stored_type(resolve({"reference"}), DType::kF64))
      .row(expected.expectation, 2, 1, own);
  const double value = answer.expected["out"].value(2, 1, 64);
  const double allowed = bound[64] * (1.0 + 0x1p-20) + own[64];
  answer.actual["out"].set(value - 0.999 * allowed, 2, 1, 64);
  EXPECT_EQ(answer.judge().verdict, Verdict::kPass);
  EXPECT_NEAR(comparison(answer.judge(), "out").ratio, 0.999, 1e-6);
  answer.actual["out"].set(value - 1.001 * allowed, 2, 1, 64);
  EXPECT_EQ(answer.judge().gate, Gate::kBound);
}

TEST_F(Judging, TheExpectationsOwnErrorIsAdded) {
  JudgedAnswer answer(drawn_.op, DType::kF64);
  const FakeBounds bound(0.25);
  const FakeBounds own(0.125);
  const auto verdict_of = [&](double error) {
    answer.actual["out"].set(answer.expected["out"].value(1, 1, 1) + error, 1, 1, 1);
    return judge::judge_by({&bound, nullptr, &own}, answer.problem, answer.expected_answer(),
                           answer.actual_answer(), answer.options)
        .verdict;
  };
  EXPECT_EQ(verdict_of(0.374), Verdict::kPass);
  EXPECT_EQ(verdict_of(0.376), Verdict::kFail);
}

TEST_F(Judging, SpecialsWhereNoneIsExpectedAreSeenAnywhere) {
  for (const double special : {kNaN, -kNaN, kInf, -kInf}) {
    expect_fault(special, 0, 0, 0, Gate::kNonfinite);
    expect_fault(special, 4, 1, 129, Gate::kNonfinite);
    expect_fault(special, 2, 1, 64, Gate::kNonfinite);
  }
}

TEST_F(Judging, AFlippedSignIsSeenAtEveryElement) {
  JudgedAnswer answer(drawn_.op);
  const HostTensor right = answer.actual["out"];
  for (std::int64_t i = 0; i < right.num_units(); i += 7) {
    answer.actual["out"] = right;
    answer.actual["out"].set_code(i, right.code(i) ^ 0x80000000u);
    EXPECT_EQ(answer.judge().verdict, Verdict::kFail) << i;
  }
}

TEST_F(Judging, RowsInTheWrongPlaceAreSeen) {
  JudgedAnswer answer(drawn_.op);
  const HostTensor right = answer.actual["out"];
  HostTensor& out = answer.actual["out"];
  copy_units(right, 0, 130, out, 130);  // heads 0 and 1 of token 0
  copy_units(right, 130, 130, out, 0);
  EXPECT_EQ(answer.judge().gate, Gate::kBound);
  out = right;
  copy_units(right, 0, 260, out, 4 * 260);  // tokens 0 and 4
  EXPECT_EQ(answer.judge().gate, Gate::kBound);
  out = right;
  copy_units(right, 0, right.num_units() - 1, out, 1);  // all shifted by one element
  EXPECT_EQ(answer.judge().gate, Gate::kBound);
  out = right;
  for (std::int64_t t = 0; t < 5; ++t) {  // [heads, tokens] as if it were [tokens, heads]
    for (std::int64_t h = 0; h < 2; ++h) {
      copy_units(right, (t * 2 + h) * 130, 130, out, (h * 5 + t) * 130);
    }
  }
  EXPECT_EQ(answer.judge().gate, Gate::kBound);
}

TEST_F(Judging, ExpectedSpecialsMustStandInTheirPlacesWithTheirSigns) {
  MutableTensorView value = drawn_.pool.zeros(DType::kF32, {7, 1, 4});
  store_code(DType::kF32, encode(DType::kF32, 1.0, Overflow::kInfinity), value.at(0, 0, 3));
  store_code(DType::kF32, encode(DType::kF32, kNaN, Overflow::kInfinity), value.at(6, 0, 1));
  store_code(DType::kF32, encode(DType::kF32, -kInf, Overflow::kInfinity), value.at(6, 0, 2));
  drawn_.op.kv.value = value;
  JudgedAnswer answer(drawn_.op);
  ASSERT_TRUE(std::isnan(answer.expected["out"].value(4, 0, 1)));
  ASSERT_EQ(answer.expected["out"].value(4, 0, 2), -kInf);
  // Beside a NaN nothing is known of the finite elements: no pass, whatever they are.
  EXPECT_EQ(answer.judge().verdict, Verdict::kMistrusted) << answer.judge().reason;
  EXPECT_EQ(answer.judge().rows, 10);
  EXPECT_EQ(answer.judge().vacuous_rows, 2);
  answer.actual["out"].set(12345.0, 4, 0, 0);
  EXPECT_EQ(answer.judge().verdict, Verdict::kMistrusted);
  answer.actual["out"].set(-kNaN, 4, 0, 1);  // a NaN is a NaN
  EXPECT_NE(answer.judge().verdict, Verdict::kFail);
  const std::pair<std::int64_t, double> faults[] = {{1, 0.0},   {1, kInf}, {2, kInf}, {2, kNaN},
                                                    {2, -3e38}, {0, kNaN}, {0, -kInf}};
  for (const auto& [j, wrong] : faults) {
    JudgedAnswer planted(drawn_.op);
    planted.actual["out"].set(wrong, 4, 0, j);
    EXPECT_EQ(planted.judge().gate, Gate::kNonfinite) << j << ' ' << wrong;
  }
}

TEST_F(Judging, AnswersBeyondTheStoredTypeMayOverflowOrSaturate) {
  JudgedAnswer answer(drawn_.op, DType::kF16, "f16_flash");
  answer.expected["out"].set(65500.0, 0, 0, 0);
  answer.expected["out"].set(-1e6, 1, 0, 0);
  const std::pair<double, double> right[] = {
      {kInf, -kInf}, {65504.0, -65504.0}, {65472.0, -65504.0}};
  const std::pair<double, double> wrong[] = {
      {-kInf, -kInf}, {65504.0, 65504.0}, {65504.0, kInf}, {65504.0, kNaN}, {65504.0, -65472.0}};
  for (const auto& [first, second] : right) {
    answer.actual["out"].set(first, 0, 0, 0);
    answer.actual["out"].set(second, 1, 0, 0);
    EXPECT_EQ(answer.judge(FakeBounds(32.0)).verdict, Verdict::kPass) << first << ' ' << second;
  }
  for (const auto& [first, second] : wrong) {
    answer.actual["out"].set(first, 0, 0, 0);
    answer.actual["out"].set(second, 1, 0, 0);
    EXPECT_EQ(answer.judge(FakeBounds(32.0)).verdict, Verdict::kFail) << first << ' ' << second;
  }
  answer.actual["out"].set(kInf, 0, 0, 0);  // too near for a bound of 1
  answer.actual["out"].set(-kInf, 1, 0, 0);
  EXPECT_EQ(answer.judge(FakeBounds(1.0)).gate, Gate::kNonfinite);
}

TEST_F(Judging, WithoutABoundTheHullStillHolds) {
  JudgedAnswer answer(drawn_.op);
  FakeBounds bounds(kInf);
  bounds.hull = 1.0;
  Judgement judgement = answer.judge(bounds);
  EXPECT_EQ(judgement.verdict, Verdict::kMistrusted);
  EXPECT_FALSE(judgement.gate.has_value());
  EXPECT_EQ(judgement.rows, 10);
  EXPECT_EQ(judgement.vacuous_rows, 10);
  EXPECT_EQ(judgement.reason, "10 of 10 rows have no bound");
  EXPECT_EQ(comparison(judgement, "out").ratio, 0.0);
  answer.actual["out"].set(-1.5, 1, 1, 127);
  judgement = answer.judge(bounds);
  EXPECT_EQ(judgement.verdict, Verdict::kFail);
  EXPECT_EQ(judgement.gate, Gate::kHull);
  EXPECT_EQ(judgement.reason, "out[1,1,127] is -1.5, outside the hull of its values, 1");
  EXPECT_EQ(comparison(judgement, "out").ratio, 1.5);
  EXPECT_EQ(comparison(judgement, "out").worst.bound, kInf);
  answer.actual["out"].set(kInf, 1, 1, 127);  // not what an overflow leaves where the hull is 1
  EXPECT_EQ(answer.judge(bounds).gate, Gate::kNonfinite);
  const double right = answer.expected["out"].value(1, 1, 127);
  answer.actual["out"].set(right > 0.0 ? -kInf : kInf, 1, 1, 127);
  EXPECT_EQ(answer.judge(FakeBounds(kInf)).gate, Gate::kNonfinite);  // nor of the other sign
}

TEST_F(Judging, TheHullComesBeforeTheBound) {
  JudgedAnswer answer(drawn_.op);
  FakeBounds bounds(0.25);
  bounds.hull = 1.0;
  answer.actual["out"].set(1.26, 0, 0, 0);
  const Judgement judgement = answer.judge(bounds);
  EXPECT_EQ(judgement.gate, Gate::kHull);
  EXPECT_EQ(judgement.reason.find("out[0,0,0] is 1.25999"), 0U) << judgement.reason;
  EXPECT_TRUE(judgement.reason.ends_with(", outside the hull of its values, 1.25"));
  const TensorComparison& out = comparison(judgement, "out");
  EXPECT_EQ(out.worst.bound, 0.25 * (1.0 + 0x1p-20));
  EXPECT_EQ(out.ratio, std::fabs(out.worst.actual - out.worst.expected) / out.worst.bound);
  answer.actual["out"].set(1.24, 0, 0, 0);
  EXPECT_EQ(answer.judge(bounds).gate, Gate::kBound);
}

TEST_F(Judging, RowsThatSeeNoKeyAreZeroOfEitherSign) {
  DrawnProblem more_rows(4, 2, 3);  // rows 0 and 1 lie before the first key
  JudgedAnswer answer(more_rows.op);
  ASSERT_EQ(answer.expected["lse"].value(0, 1), -kInf);
  Judgement judgement = answer.judge();
  EXPECT_EQ(judgement.verdict, Verdict::kPass) << judgement.reason;
  EXPECT_EQ(judgement.rows, 4);
  answer.actual["out"].set(-0.0, 1, 1, 2);
  EXPECT_EQ(answer.judge().verdict, Verdict::kPass);
  answer.actual["out"].set(1e-45, 1, 1, 2);
  judgement = answer.judge();
  EXPECT_EQ(judgement.gate, Gate::kEmptyRows);
  EXPECT_TRUE(judgement.reason.starts_with("out[1,1,2] is 1.4")) << judgement.reason;
  answer.actual["out"].set(kNaN, 1, 1, 2);
  EXPECT_EQ(answer.judge().gate, Gate::kNonfinite);
  answer.actual["out"].set(0.0, 1, 1, 2);
  answer.actual["lse"].set(-1e30, 1, 0);
  EXPECT_EQ(answer.judge().gate, Gate::kNonfinite);
}

TEST_F(Judging, TheFirstGateInOrderNamesTheFault) {
  JudgedAnswer answer(drawn_.op);
  answer.actual["out"].set(100.0, 0, 0, 0);
  EXPECT_EQ(answer.judge().gate, Gate::kHull);
  answer.actual["lse"].set(-kNaN, 1, 4);  // the sign of a NaN is not shown
  Judgement judgement = answer.judge();
  EXPECT_EQ(judgement.gate, Gate::kNonfinite);
  EXPECT_TRUE(judgement.reason.starts_with("lse[1,4] is nan, expected ")) << judgement.reason;
  answer.actual["out"].set(kNaN, 2, 0, 9);
  judgement = answer.judge();
  EXPECT_TRUE(judgement.reason.starts_with("out[2,0,9] is nan")) << judgement.reason;
  answer.canary = "4 bytes before out were written";
  judgement = answer.judge();
  EXPECT_EQ(judgement.verdict, Verdict::kFail);
  EXPECT_EQ(judgement.gate, Gate::kCanary);
  EXPECT_EQ(judgement.reason, "4 bytes before out were written");
}

TEST_F(Judging, TheProbabilisticTierFailsAfterAllOthers) {
  JudgedAnswer answer(drawn_.op);
  FakeBounds bounds(0.5);
  bounds.probable = 0.125;
  answer.actual["out"].set(answer.expected["out"].value(1, 0, 3) + 0.25, 1, 0, 3);
  EXPECT_EQ(answer.judge(bounds).verdict, Verdict::kPass);  // not asked
  answer.options.strict = true;
  Judgement judgement = answer.judge(bounds);
  EXPECT_EQ(judgement.strict, Verdict::kFail);
  EXPECT_EQ(judgement.verdict, Verdict::kFail);
  EXPECT_EQ(judgement.gate, Gate::kStrict);
  EXPECT_EQ(judgement.reason, "out[1,0,3] is off by 2 times what is probable");
  EXPECT_EQ(comparison(judgement, "out").over, 0);
  bounds.probable = 0.375;
  EXPECT_EQ(answer.judge(bounds).strict, Verdict::kPass);
  bounds.probable = 0.0;  // the operation has none
  EXPECT_FALSE(answer.judge(bounds).strict.has_value());
  EXPECT_EQ(answer.judge().strict, Verdict::kFail);  // 0.25 of fp32
}

}  // namespace
}  // namespace attn
