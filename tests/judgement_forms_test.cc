// Judging log-sum-exps in every form, codes, caches after a write and logits; answers that do not
// fit their question.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "attn/error.h"
#include "core/special_values.h"
#include "tests/judged_answer.h"

namespace attn {
namespace {

// Rewrites the stored lse by a rule of [head, token], in a layout.
template <class Rule>
void rewrite_lse(JudgedAnswer& answer, LseLayout layout, Rule rule, DType stored = DType::kF32) {
  const HostTensor& right = answer.expected.at("lse");
  const std::int64_t heads = right.shape()[0];
  const std::int64_t tokens = right.shape()[1];
  const bool by_head = layout == LseLayout::kHeadsTokens;
  HostTensor lse(stored, by_head ? std::vector{heads, tokens} : std::vector{tokens, heads});
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      const double value = rule(right.value(h, t), h, t);
      by_head ? lse.set(value, h, t) : lse.set(value, t, h);
    }
  }
  answer.actual["lse"] = std::move(lse);
}

double base_2(double lse, std::int64_t, std::int64_t) { return lse / std::numbers::ln2; }
double as_is(double lse, std::int64_t, std::int64_t) { return lse; }

TEST(JudgedLse, BaseIsTranslatedAndAWrongBaseSeen) {
  DrawnProblem drawn;
  JudgedAnswer answer(drawn.op);
  rewrite_lse(answer, LseLayout::kHeadsTokens, base_2);
  Judgement judgement = answer.judge();
  EXPECT_EQ(judgement.gate, Gate::kBound);
  EXPECT_TRUE(judgement.reason.starts_with("lse[")) << judgement.reason;
  EXPECT_EQ(comparison(judgement, "lse").over, 10);
  answer.form.base = LseBase::k2;
  EXPECT_EQ(answer.judge().verdict, Verdict::kPass);
  rewrite_lse(answer, LseLayout::kHeadsTokens, as_is);
  EXPECT_EQ(answer.judge().verdict, Verdict::kFail);
}

TEST(JudgedLse, LayoutIsTranslatedAndAWrongOneSeen) {
  DrawnProblem drawn;
  JudgedAnswer answer(drawn.op);
  answer.form.layout = LseLayout::kTokensHeads;
  rewrite_lse(answer, LseLayout::kTokensHeads, as_is);
  EXPECT_EQ(answer.judge().verdict, Verdict::kPass);
  answer.actual["lse"].set(answer.expected["lse"].value(1, 3) + 0.01, 3, 1);
  Judgement judgement = answer.judge();
  EXPECT_EQ(judgement.gate, Gate::kBound);
  EXPECT_EQ(comparison(judgement, "lse").worst.at, (std::vector<std::int64_t>{1, 3}));
  rewrite_lse(answer, LseLayout::kHeadsTokens, as_is);
  EXPECT_THROW(answer.judge(), Error);  // of another shape

  DrawnProblem square(2, 4);  // as many tokens as heads
  JudgedAnswer twisted(square.op);
  twisted.form.layout = LseLayout::kTokensHeads;
  EXPECT_EQ(twisted.judge().gate, Gate::kBound);
}

TEST(JudgedLse, ErrorsOfEitherSignInAnyRowAreSeen) {
  DrawnProblem drawn;
  for (const std::int64_t t : {0, 4}) {
    for (const double sign : {1.0, -1.0}) {
      JudgedAnswer answer(drawn.op, DType::kF64);
      const double right = answer.expected["lse"].value(1, t);
      answer.actual["lse"].set(right + sign * 0.249, 1, t);
      EXPECT_EQ(answer.judge(FakeBounds(0.25)).verdict, Verdict::kPass);
      answer.actual["lse"].set(right + sign * 0.251, 1, t);
      EXPECT_EQ(answer.judge(FakeBounds(0.25)).gate, Gate::kBound);
      for (const double special : {kNaN, kInf, -kInf}) {
        answer.actual["lse"].set(special, 1, t);
        EXPECT_EQ(answer.judge(FakeBounds(0.25)).gate, Gate::kNonfinite);
      }
    }
  }
}

class JudgedSinks : public testing::Test {
 protected:
  JudgedSinks() : drawn(4, 2, 3) {
    drawn.op.sinks = drawn.pool.values(DType::kF32, {2}, {0.75, -1});
  }

  // The log-sum-exp of the keys alone.
  static double without_sink(double lse, std::int64_t head, std::int64_t) {
    const double sink = head == 0 ? 0.75 : -1.0;
    return lse == sink ? -kInf : std::log(std::exp(lse) - std::exp(sink));
  }

  DrawnProblem drawn;  // tokens 0 and 1 see no key
};

TEST_F(JudgedSinks, WithAndWithoutSinkAreTranslatedAndNotConfused) {
  JudgedAnswer answer(drawn.op);
  EXPECT_EQ(answer.judge().verdict, Verdict::kPass) << answer.judge().reason;
  rewrite_lse(answer, LseLayout::kHeadsTokens, without_sink);
  EXPECT_EQ(answer.judge().verdict, Verdict::kFail);
  answer.form.includes_sink = false;
  EXPECT_EQ(answer.judge().verdict, Verdict::kPass) << answer.judge().reason;
  rewrite_lse(answer, LseLayout::kHeadsTokens, as_is);
  EXPECT_EQ(answer.judge().verdict, Verdict::kFail);  // the sink counted twice
}

// Without any bound of its own: an error of the keys' log-sum-exp counts with the keys' share.
TEST_F(JudgedSinks, WhatAddingTheSinkMagnifiesIsAllowed) {
  JudgedAnswer answer(drawn.op, DType::kF64);
  rewrite_lse(answer, LseLayout::kHeadsTokens, without_sink);
  answer.form.includes_sink = false;
  FakeBounds exact(0.0);
  for (const std::int64_t head : {0, 1}) {
    exact.empty_rows[{0, head}] = exact.empty_rows[{1, head}] = true;
  }
  EXPECT_EQ(answer.judge(exact).verdict, Verdict::kPass) << answer.judge(exact).reason;
  const double right = answer.actual["lse"].value(1, 3);
  answer.actual["lse"].set(right + 1e-6, 1, 3);
  EXPECT_EQ(answer.judge(exact).gate, Gate::kBound);
}

TEST_F(JudgedSinks, ARowWithoutKeysHasTheSinkItself) {
  JudgedAnswer answer(drawn.op);
  ASSERT_EQ(answer.expected["lse"].value(0, 1), 0.75);
  answer.actual["lse"].set(std::nextafter(0.75f, 1.0f), 0, 1);
  const Judgement judgement = answer.judge();
  EXPECT_EQ(judgement.gate, Gate::kEmptyRows);
  EXPECT_TRUE(judgement.reason.starts_with("lse[0,1] is 0.75")) << judgement.reason;
  answer.actual["lse"].set(-kInf, 0, 1);
  EXPECT_EQ(answer.judge().gate, Gate::kNonfinite);
  rewrite_lse(answer, LseLayout::kHeadsTokens, base_2);
  answer.form.base = LseBase::k2;
  EXPECT_EQ(answer.judge().verdict, Verdict::kPass) << answer.judge().reason;
  answer.actual["lse"].set(1.0, 0, 1);  // 0.693 in base e
  EXPECT_EQ(answer.judge().gate, Gate::kEmptyRows);
}

TEST_F(JudgedSinks, TheStoredTypeMayRoundTheSink) {
  drawn.op.sinks = drawn.pool.values(DType::kF32, {2}, {0.7, -1});
  JudgedAnswer answer(drawn.op, DType::kBF16, "bf16_flash");
  EXPECT_EQ(answer.judge().verdict, Verdict::kPass) << answer.judge().reason;
  answer.actual["lse"].set(0.6953125, 0, 1);  // one bf16 below
  EXPECT_EQ(answer.judge().gate, Gate::kEmptyRows);
}

TEST(JudgedLse, EmptyRowsMarkedByPlusInfinityAreTranslated) {
  DrawnProblem drawn(4, 2, 3);
  JudgedAnswer answer(drawn.op);
  const auto marked = [](double lse, std::int64_t, std::int64_t) {
    return lse == -kInf ? kInf : lse;
  };
  rewrite_lse(answer, LseLayout::kHeadsTokens, marked);
  EXPECT_EQ(answer.judge().gate, Gate::kNonfinite);
  answer.form.empty = EmptyLse::kPlusInfinity;
  EXPECT_EQ(answer.judge().verdict, Verdict::kPass) << answer.judge().reason;
}

TEST(JudgedLse, MayBeOfAnotherTypeThanOut) {
  DrawnProblem drawn;
  JudgedAnswer answer(drawn.op, DType::kBF16, "bf16_flash");
  rewrite_lse(answer, LseLayout::kHeadsTokens, as_is, DType::kF32);
  EXPECT_EQ(answer.judge().verdict, Verdict::kPass);
  const double right = answer.expected["lse"].value(0, 0);
  answer.actual["lse"].set(right + 0.001 * std::fabs(right) + 0.002, 0, 0);
  EXPECT_EQ(answer.judge(FakeBounds(0.0009)).gate, Gate::kBound);
  // And is judged by its own type: half an ulp of bf16 is too much for f32.
  JudgedAnswer exact(drawn.op, DType::kBF16, "fp32");
  exact.actual["lse"].set(right * (1.0 + 0x1p-9), 0, 0);
  EXPECT_EQ(exact.judge().verdict, Verdict::kPass) << exact.judge().reason;
  rewrite_lse(exact, LseLayout::kHeadsTokens, as_is, DType::kF32);
  EXPECT_EQ(exact.judge().verdict, Verdict::kPass) << exact.judge().reason;
  exact.actual["lse"].set(right * (1.0 + 0x1p-9), 0, 0);
  EXPECT_EQ(exact.judge().gate, Gate::kBound);
}

// Rows of out further apart than they are long, elements of lse as well.
TEST(JudgedStrides, GapsBelongToNobody) {
  DrawnProblem drawn;
  JudgedAnswer answer(drawn.op, DType::kBF16, "bf16_flash");
  HostTensor out(DType::kBF16, {5, 2, 140}), lse(DType::kBF16, {2, 5, 3});
  const auto spread = [&](const HostTensor& from, std::int64_t row, HostTensor& to) {
    const std::int64_t pitch = to.shape().back();
    for (std::int64_t i = 0; i < to.num_units(); ++i) to.set_code(i, 0x7FC0);  // NaN
    for (std::int64_t i = 0; i < from.num_units(); ++i) {
      to.set_code(i / row * pitch + i % row, from.code(i));
    }
  };
  spread(answer.actual["out"], 130, out);
  spread(answer.actual["lse"], 1, lse);
  const auto judged = [&] {
    ActualAnswer actual = answer.actual_answer();
    for (NamedView& tensor : actual.tensors) {
      const bool is_out = tensor.name == "out";
      const TensorView wide = is_out ? out.view() : lse.view();
      tensor.view.data = wide.data;
      for (int axis = 0; axis < tensor.view.rank; ++axis) {
        tensor.view.stride_bytes[axis] = wide.stride_bytes[axis];
      }
    }
    return judge_answer(answer.problem, answer.expected_answer(), actual, answer.options);
  };
  Judgement judgement = judged();
  EXPECT_EQ(judgement.verdict, Verdict::kPass) << judgement.reason;
  const Judgement dense = answer.judge();
  EXPECT_EQ(comparison(judgement, "out").ratio, comparison(dense, "out").ratio);
  EXPECT_EQ(comparison(judgement, "lse").ratio, comparison(dense, "lse").ratio);
  out.set(kNaN, 4, 1, 129);
  judgement = judged();
  EXPECT_EQ(judgement.gate, Gate::kNonfinite);
  EXPECT_EQ(comparison(judgement, "out").worst.at, (std::vector<std::int64_t>{4, 1, 129}));
  EXPECT_EQ(comparison(judgement, "out").over, 1);
}

class JudgedCodes : public testing::Test {
 protected:
  JudgedCodes() { drawn.op.output_scale = drawn.pool.values(DType::kF32, {1}, {0x1p-5}); }
  DrawnProblem drawn;
};

TEST_F(JudgedCodes, PassRoundedAndFailTwoStepsAway) {
  JudgedAnswer answer(drawn.op);
  EXPECT_EQ(answer.judge().verdict, Verdict::kPass) << answer.judge().reason;
  EXPECT_EQ(answer.judge().tensors.size(), 3u);
  HostTensor& codes = answer.actual["out_codes"];
  const HostTensor right = codes;
  for (const std::int64_t i : {std::int64_t{0}, std::int64_t{63}, right.num_units() - 1}) {
    for (const int step : {2, -2}) {
      codes = right;
      codes.set_code(i, right.code(i) + static_cast<std::uint64_t>(step));
      const Judgement judgement = answer.judge();
      EXPECT_EQ(judgement.gate, Gate::kBound) << i;
      EXPECT_TRUE(judgement.reason.starts_with("out_codes[")) << judgement.reason;
    }
    codes = right;
    codes.set_code(i, right.code(i) ^ 0x80);
    EXPECT_EQ(answer.judge().verdict, Verdict::kFail);
    codes.set_code(i, 0x7F);
    EXPECT_EQ(answer.judge().gate, Gate::kNonfinite);
  }
}

// One more rounding, to f8_e4m3fn of out / scale.
TEST_F(JudgedCodes, AreBoundedAsWhatRoundsToThem) {
  JudgedAnswer answer(drawn.op);
  const ExpectedAnswer expected = answer.expected_answer();
  Arithmetic arithmetic = with_stored_type(resolve({"fp32"}), DType::kF32);
  arithmetic.out = {NumberFormat::kF8E4M3FN, RoundingMode::kNearest, 32.0, false};
  arithmetic.normalize_roundings = 3;
  std::vector<double> bound(130), own(130);
  ErrorBound(answer.problem, arithmetic).row(expected.expectation, 4, 0, bound);
  ErrorBound(answer.problem, with_stored_type(resolve({"reference"}), DType::kF64))
      .row(expected.expectation, 4, 0, own);
  answer.actual["out_codes"].set_code((4 * 2 + 0) * 130 + 5, 0x7E);
  const Judgement judgement = answer.judge();
  EXPECT_EQ(comparison(judgement, "out_codes").worst.actual, 14.0);
  EXPECT_EQ(comparison(judgement, "out_codes").worst.at, (std::vector<std::int64_t>{4, 0, 5}));
  EXPECT_DOUBLE_EQ(judgement.tensors.back().worst.bound, bound[5] * (1.0 + 0x1p-20) + own[5]);
}

// Far beyond the largest value its bound is far larger than that, but only one code is right.
TEST_F(JudgedCodes, FarBeyondTheLargestOnlyThatIsRight) {
  drawn.op.output_scale = drawn.pool.values(DType::kF32, {1}, {0x1p-40});
  JudgedAnswer answer(drawn.op);
  EXPECT_EQ(answer.judge().verdict, Verdict::kPass) << answer.judge().reason;
  HostTensor& codes = answer.actual["out_codes"];
  const std::uint64_t right = codes.code(0);
  ASSERT_EQ(right & 0x7F, 0x7Eu);
  for (const std::uint64_t wrong : {std::uint64_t{0}, right - 1, right ^ 0x80}) {
    codes.set_code(0, wrong);
    EXPECT_EQ(answer.judge().verdict, Verdict::kFail) << wrong;
  }
}

TEST_F(JudgedCodes, SaturateAndTheirNansMatch) {
  drawn.op.output_scale = drawn.pool.values(DType::kF32, {1}, {0x1p-12});  // 448 is 0.109375
  JudgedAnswer answer(drawn.op);
  ASSERT_GT(std::fabs(answer.expected["out"].value(0, 0, 0)), 0.11);
  EXPECT_EQ(answer.judge().verdict, Verdict::kPass) << answer.judge().reason;
  HostTensor& codes = answer.actual["out_codes"];
  ASSERT_EQ(codes.code(0) & 0x7F, 0x7Eu);
  codes.set_code(0, codes.code(0) - 2);
  EXPECT_EQ(answer.judge().gate, Gate::kBound);
  codes.set_code(0, 0xFF);
  EXPECT_EQ(answer.judge().gate, Gate::kNonfinite);
}

CacheWriteOp small_write(TensorPool& pool) {
  CacheWriteOp op;
  op.key = pool.values(DType::kF32, {2, 1, 3}, {1, 2, 3, 4, 5, 6});
  op.value = pool.values(DType::kF32, {2, 1, 3}, {-1, 0, 3, 7, 8, 9});
  op.slot_mapping = pool.values(DType::kI64, {2}, {3, -1});
  op.cache.layout = KvLayout::kPaged;
  op.cache.key = pool.zeros(DType::kBF16, {2, 2, 1, 3});
  op.cache.value = pool.zeros(DType::kBF16, {2, 2, 1, 3});
  return op;
}

TEST(JudgedCaches, AreComparedBitForBit) {
  TensorPool pool;
  JudgedAnswer answer(small_write(pool));
  Judgement judgement = answer.judge();
  EXPECT_EQ(judgement.verdict, Verdict::kPass);
  ASSERT_EQ(judgement.tensors.size(), 2u);
  EXPECT_FALSE(judgement.telemetry.has_value());
  EXPECT_TRUE(judgement.policies.empty());
  HostTensor& keys = answer.actual["key_cache_after"];
  for (const std::int64_t i : {0, 9, 11}) {
    keys.set_code(i, keys.code(i) ^ 1);
    judgement = answer.judge();
    EXPECT_EQ(judgement.verdict, Verdict::kFail);
    EXPECT_EQ(judgement.gate, Gate::kExact);
    EXPECT_TRUE(judgement.reason.starts_with("key_cache_after[")) << judgement.reason;
    EXPECT_EQ(comparison(judgement, "key_cache_after").over, 1);
    keys.set_code(i, keys.code(i) ^ 1);
  }
  keys.set_code(0, 0x8000);  // -0 is another code
  EXPECT_EQ(answer.judge().gate, Gate::kExact);
}

TEST(JudgedLogits, ErrorsAndWrongRangesAreSeen) {
  TensorPool pool;
  IndexerOp op;
  op.query = pool.values(DType::kF32, {2, 1, 2}, {1, 2, -1, 0.5});
  op.key = pool.values(DType::kF32, {3, 2}, {1, 1, 0.25, -1, -2, 3});
  op.weights = pool.values(DType::kF32, {2, 1}, {0.5, 2});
  op.k_start = pool.values(DType::kI32, {2}, {0, 1});
  op.k_end = pool.values(DType::kI32, {2}, {2, 3});
  JudgedAnswer answer(op);
  Judgement judgement = answer.judge();
  EXPECT_EQ(judgement.verdict, Verdict::kPass) << judgement.reason;
  EXPECT_EQ(judgement.rows, 2);
  EXPECT_EQ(comparison(judgement, "logits").elements, 6);
  EXPECT_FALSE(judgement.policies.at("onednn_absmag").has_value());
  answer.actual["logits"].set(answer.expected["logits"].value(1, 2) * 1.001, 1, 2);
  judgement = answer.judge();
  EXPECT_EQ(judgement.gate, Gate::kBound);
  EXPECT_TRUE(judgement.reason.starts_with("logits[1,2] is off by ")) << judgement.reason;
  answer.actual["logits"].set(0.0, 0, 2);  // beyond its range
  EXPECT_EQ(answer.judge().gate, Gate::kNonfinite);
  EXPECT_EQ(answer.judge(FakeBounds(kInf)).vacuous_rows, 2);
}

TEST(JudgedAnswers, ThatDoNotFitTheQuestionAreErrors) {
  DrawnProblem drawn;
  const auto message = [&](auto change) -> std::string {
    JudgedAnswer answer(drawn.op);
    change(answer);
    try {
      answer.judge();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message([](JudgedAnswer&) {}), "");
  EXPECT_EQ(message([](JudgedAnswer& a) { a.actual.erase("lse"); }), "there is no actual lse");
  EXPECT_EQ(message([](JudgedAnswer& a) { a.expected.erase("lse"); }), "there is no expected lse");
  EXPECT_EQ(message([](JudgedAnswer& a) {
              a.actual["out"] = HostTensor(DType::kF32, {5, 2, 129});
            }),
            "actual out is f32[5,2,129], expected floating [5,2,130]");
  EXPECT_EQ(message([](JudgedAnswer& a) {
              a.actual["out"] = HostTensor(DType::kI32, {5, 2, 130});
            }),
            "actual out is i32[5,2,130], expected floating [5,2,130]");
  EXPECT_EQ(message([](JudgedAnswer& a) {
              a.actual.erase("out");
              a.expected.erase("out");
            }),
            "the expectation's out is absent, expected [5,2,130]");
  EXPECT_EQ(message([](JudgedAnswer& a) { a.options.contract.name = "fp33"; }).empty(), false);
  const HostTensor naive(DType::kF32, {5, 2, 7});
  EXPECT_EQ(message([&](JudgedAnswer& a) { a.options.naive = naive.view(); }),
            "naive is f32[5,2,7], expected the shape of f64[5,2,130]");
  EXPECT_EQ(message([](JudgedAnswer& a) { a.actual["notes"] = HostTensor(DType::kU8, {1}); }), "");
}

}  // namespace
}  // namespace attn
