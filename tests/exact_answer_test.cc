// Correctly rounded values of rows whose true values are known from elsewhere: integers, or
// 80-digit decimals. Hexadecimal constants come from Python, with
//   from decimal import Decimal as D, getcontext; getcontext().prec = 80
//   near = lambda x: float(str(x)).hex()       # float() of a string rounds correctly
// and the expression in the comment; rounding upward and downward by math.nextafter from there.
#include "golden/exact/exact_answer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "attn/error.h"
#include "tests/cpu_random_problem.h"
#include "tests/exact_answers.h"
#include "tests/exact_row.h"
#include "tests/scoped_workers.h"

namespace attn {
namespace {

double out_of(const ExactRow& row) { return ExactAnswer(row.op).values("out").at(0); }
double lse_of(const ExactRow& row) { return ExactAnswer(row.op).values("lse").at(0); }

// `n` keys with logit 0 and values 1, 2, ...
ExactRow equal_keys(int n) {
  std::vector<std::vector<double>> values;
  for (int k = 0; k < n; ++k) values.push_back({k + 1.0});
  return ExactRow(std::vector<double>(static_cast<std::size_t>(n), 0.0), values);
}

TEST(ExactAnswer, OfEqualLogitsIsTheRoundedMean) {
  EXPECT_EQ(out_of(ExactRow({0, 0, 0}, {{1}, {2}, {4}})), 7.0 / 3.0);  // one rounding in both
  EXPECT_EQ(out_of(ExactRow({0.1, 0.1, 0.1}, {{1}, {2}, {4}})), 7.0 / 3.0);
  ExactRow row = equal_keys(9);  // the sink as a tenth key
  row.set_sink(0.0);
  EXPECT_EQ(out_of(row), 4.5);
}

TEST(ExactAnswer, HasTheLogarithmOfTheNumberOfEqualKeysAsLse) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(lse_of(equal_keys(1))), 0U);
  EXPECT_EQ(lse_of(equal_keys(2)), 0x1.62e42fefa39efp-1);   // near(D(2).ln())
  EXPECT_EQ(lse_of(equal_keys(3)), 0x1.193ea7aad030bp+0);   // near(D(3).ln())
  EXPECT_EQ(lse_of(equal_keys(5)), 0x1.9c041f7ed8d33p+0);   // near(D(5).ln())
  EXPECT_EQ(lse_of(equal_keys(7)), 0x1.f2272ae325a57p+0);   // near(D(7).ln())
  EXPECT_EQ(lse_of(equal_keys(10)), 0x1.26bb1bbb55516p+1);  // near(D(10).ln())
}

TEST(ExactAnswer, CountsASinkOnceAndWithoutValue) {
  ExactRow row({0, 0, 0}, {{1}, {2}, {4}});
  row.set_sink(1.0);
  EXPECT_EQ(out_of(row), 0x1.39617f283453cp+0);  // near(D(7) / (3 + D(1).exp()))
  EXPECT_EQ(lse_of(row), 0x1.be610d0dde94cp+0);  // near((3 + D(1).exp()).ln())
  row.op.lse_includes_sink = false;
  EXPECT_EQ(lse_of(row), 0x1.193ea7aad030bp+0);
}

TEST(ExactAnswer, RoundsAWeightedMean) {
  // u = 0, 1/2, -5/4; v = 1, -2, 3; Z = sum(e^u)
  const ExactAnswer answer{ExactRow({0, 0.5, -1.25}, {{1}, {-2}, {3}}).op};
  EXPECT_EQ(answer.values("out").at(0), -0x1.f5a4da86f2023p-2);  // near(sum(e^u * v) / Z)
  EXPECT_EQ(answer.values("lse").at(0), 0x1.13a825b91f03cp+0);   // near(Z.ln())
}

TEST(ExactAnswer, AppliesSoftCapAndSquareRootBias) {
  ExactRow capped({1}, {{1}});
  capped.op.logits_soft_cap = 2.0;
  EXPECT_EQ(lse_of(capped), 0x1.d9353d7568af3p-1);  // near(2 * tanh(1/2))
  ExactRow biased({0, 0, 0}, {{1}, {1}, {1}});
  biased.op.bias.alibi_form = AlibiForm::kSqrt;
  biased.op.bias.alibi_slopes = biased.pool.values(DType::kF32, {1}, {1});
  biased.op.mask.attn_mask = biased.pool.values(DType::kBool, {1, 1, 1, 3}, {1, 0, 0});
  EXPECT_EQ(lse_of(biased), -0x1.6a09e667f3bcdp+0);  // near(-D(2).sqrt())
}

TEST(ExactAnswer, RoundsTiesToEven) {
  EXPECT_EQ(out_of(ExactRow({0, 0}, {{1}, {1 + 0x1p-52}})), 1.0);
  EXPECT_EQ(out_of(ExactRow({0, 0}, {{1 + 0x1p-52}, {1 + 0x1p-51}})), 1 + 0x1p-51);
  // The same ties where every weight is rounded: e^-0.7 / (e^-0.7 + e^-0.7).
  EXPECT_EQ(out_of(ExactRow({-0.7, -0.7}, {{1}, {1 + 0x1p-52}})), 1.0);
  // A value with 54 bits, by a scale of 1 + 2^-1, under rounded weights: v is halfway.
  ExactRow scaled({0.3, -0.7, 0.1}, {{1 + 0x1p-52}, {1 + 0x1p-52}, {1 + 0x1p-52}});
  scaled.op.kv.v_scale = scaled.pool.values(DType::kF32, {1}, {1.5});
  EXPECT_EQ(out_of(scaled), 1.5 + 0x1p-51);
  for (int i = 1; i <= 20; ++i) {
    scaled.op.kv.key = scaled.pool.values(DType::kF64, {3, 1, 1}, {0.3 * i, -0.7, 0.1});
    EXPECT_EQ(out_of(scaled), 1.5 + 0x1p-51);
  }
}

TEST(ExactAnswer, MultipliesByScalesExactly) {
  // (1 + 2^-52) * 1.5 has 54 bits; less 1.5 it is 1.5 * 2^-52.
  ExactRow row({1 + 0x1p-52}, {{1}});
  row.op.kv.k_scale = row.pool.values(DType::kF32, {1}, {1.5});
  row.op.bias.attn_bias = row.pool.values(DType::kF32, {1, 1, 1, 1}, {-1.5});
  EXPECT_EQ(lse_of(row), 0x1.8p-52);
}

TEST(ExactAnswer, KeepsSubnormalsAndStoresZeroAsPlusZero) {
  EXPECT_EQ(out_of(ExactRow({0, 0}, {{0x1p-1074}, {0x1p-1073}})), 0x1p-1073);  // 1.5: to even
  EXPECT_EQ(out_of(ExactRow({0}, {{-0x1p-1074}})), -0x1p-1074);
  const auto bits_of = [](double x) { return std::bit_cast<std::uint64_t>(x); };
  EXPECT_EQ(bits_of(out_of(ExactRow({0}, {{-0.0}}))), 0U);
  EXPECT_EQ(bits_of(out_of(ExactRow({0, 0, 0}, {{-0x1p-1074}, {0}, {0}}))), 0U);  // a third of it
  EXPECT_EQ(bits_of(out_of(ExactRow({-0.5, -0.5}, {{1}, {-1}}))), 0U);
}

TEST(ExactAnswer, IsZeroWhereTermsCancel) {
  ExactRow row({-1, -1, -1, -1}, {{1}, {2}, {4}, {-7}});  // every weight is rounded
  row.set_sink(0.0);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(out_of(row)), 0U);
}

TEST(ExactAnswer, FindsWhatIsLeftOfTermsThatCancel) {
  // near(D(-300).exp() / (2 + D(-300).exp())): 434 bits below the terms, and the last term.
  const ExactAnswer left{ExactRow({0, -300, 0}, {{1}, {1}, {-1}}).op};
  EXPECT_EQ(left.values("out").at(0), 0x1.245639c3a49f7p-434);
  EXPECT_GT(left.bits, 400);
  ExactRow product({0}, {{1}});
  product.op.query = product.pool.values(DType::kF64, {1, 1, 3}, {1e300, 1, -1e300});
  product.op.kv.key = product.pool.values(DType::kF64, {1, 1, 3}, {1, 1, 1});
  EXPECT_EQ(lse_of(product), 1.0);
}

TEST(ExactAnswer, TellsHowManyBitsWereNeeded) {
  EXPECT_EQ(ExactAnswer(ExactRow({0, 1}, {{1}, {2}}).op).bits, 400);
  ExactRow none({0}, {{1}});
  none.op.query_start_loc = none.pool.values(DType::kI32, {2}, {0, 0});
  EXPECT_EQ(ExactAnswer(none.op).bits, 0);
}

TEST(ExactAnswer, DoesNotUnderflow) {
  // e^-100000 and e^-(10^30) are 0 in double; their ratio to each other is not.
  EXPECT_EQ(out_of(ExactRow({-1e5, -1e5}, {{1}, {3}})), 2.0);
  EXPECT_EQ(lse_of(ExactRow({-1e30, -1e30}, {{1}, {3}})), -1e30);
  EXPECT_EQ(out_of(ExactRow({0, -1e30}, {{2}, {1}})), 2.0);
}

TEST(ExactAnswer, EncodesOutputs) {
  ExactRow row({0, 0}, {{2.1, 1000, NAN, -0.2}, {2.1, 1000, 0, -0.2}});
  row.op.output_scale = row.pool.values(DType::kF32, {1}, {2});
  EXPECT_EQ(ExactAnswer(row.op).codes("out_codes"),
            (std::vector<std::uint64_t>{0x38, 0x7E, 0x7F, 0x9D}));  // 1, 448, NaN, -0.1015625
}

TEST(ExactAnswer, RefusesAnOutputCodeThatAnotherArithmeticMayChooseOtherwise) {
  const auto answer_of = [](double v) {
    ExactRow row({0}, {{v}});
    row.op.output_scale = row.pool.values(DType::kF32, {1}, {1});
    return ExactAnswer(row.op).codes("out_codes").at(0);
  };
  EXPECT_EQ(answer_of(1.0625 * (1 + 0x1p-39)), 0x39U);  // 1 and 1.125 meet at 1.0625
  EXPECT_EQ(answer_of(1.0625 * (1 - 0x1p-39)), 0x38U);
  for (const double near : {1.0625, 1.0625 * (1 + 0x1p-41), 1.0625 * (1 - 0x1p-41)}) {
    try {
      answer_of(near);
      ADD_FAILURE() << near << " has a code";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("out_codes[0,0,0]"), std::string::npos);
    }
  }
}

TEST(ExactAnswer, RefusesViewsAndFormsThatAreNotAskedFor) {
  const ExactRow row({0}, {{1}});
  TensorPool pool;
  Outputs outputs;
  outputs.out = pool.zeros(DType::kF32, {1, 1, 1});
  EXPECT_THROW(exact::answer_exactly(AttentionProblem(row.op), outputs), Error);
  outputs.out = pool.zeros(DType::kF64, {1, 1, 1});
  outputs.lse_form.base = LseBase::k2;
  EXPECT_THROW(exact::answer_exactly(AttentionProblem(row.op), outputs), Error);
  outputs.lse_form = LseForm{};
  EXPECT_EQ(exact::answer_exactly(AttentionProblem(row.op), outputs), 400);
}

TEST(ExactAnswer, IsTheSameForAnyNumberOfThreads) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    cpu_tests::RandomProblem problem;
    cpu_tests::make_random_problem(seed, 0xFF, problem);
    problem.op.output_scale = TensorView{};
    const auto answer_with = [&](int workers) {
      const ScopedWorkers scope(workers);
      const ExactAnswer answer{problem.op};
      std::vector<std::uint64_t> all;
      for (const char* name :
           {"out", "lse", "cond_pv", "cond_pav", "cond_puv", "cond_v", "cond_row"}) {
        const std::vector<std::uint64_t> codes = answer.codes(name);
        all.insert(all.end(), codes.begin(), codes.end());
      }
      return all;
    };
    EXPECT_TRUE(answer_with(1) == answer_with(4)) << "seed " << seed;
  }
}

TEST(ExactAnswer, IgnoresAnExec) {
  ExactRow row({0, 0.5, -1.25}, {{1}, {-2}, {3}});
  row.op.exec.kv_chunk = 1;
  EXPECT_EQ(out_of(row), -0x1.f5a4da86f2023p-2);
}

}  // namespace
}  // namespace attn
