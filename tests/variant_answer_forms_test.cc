// Answers that are right in more than one form.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "attn/error.h"
#include "attn/lse_form.h"
#include "attn/topk_selection.h"
#include "core/special_values.h"
#include "tests/operation_answer.h"

namespace attn {
namespace {

// 2 heads, 3 tokens. The keys' weights add up to 1 ... 6 (head after head), the sinks are log(2)
// and log(7).
constexpr double kSinkWeights[] = {2, 7};

HostTensor sinks() { return {DType::kF64, {2}, {std::log(2.0), std::log(7.0)}}; }

double weight(std::int64_t head, std::int64_t token) {
  return static_cast<double>(3 * head + token + 1);
}

// As a backend in `form` writes it, straight from the sum of weights.
HostTensor written(const LseForm& form, bool problem_counts_sink) {
  const bool tokens_first = form.layout == LseLayout::kTokensHeads;
  HostTensor lse(DType::kF64,
                 tokens_first ? std::vector<std::int64_t>{3, 2} : std::vector<std::int64_t>{2, 3});
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t t = 0; t < 3; ++t) {
      const bool counted = form.includes_sink && problem_counts_sink;
      const double sum = weight(h, t) + (counted ? kSinkWeights[h] : 0.0);
      const double value = form.base == LseBase::k2 ? std::log2(sum) : std::log(sum);
      tokens_first ? lse.set(value, t, h) : lse.set(value, h, t);
    }
  }
  return lse;
}

std::vector<LseForm> all_forms() {
  std::vector<LseForm> forms;
  for (const LseBase base : {LseBase::kE, LseBase::k2}) {
    for (const LseLayout layout : {LseLayout::kHeadsTokens, LseLayout::kTokensHeads}) {
      for (const EmptyLse empty : {EmptyLse::kMinusInfinity, EmptyLse::kPlusInfinity}) {
        for (const bool includes_sink : {true, false}) {
          forms.push_back({base, layout, empty, includes_sink});
        }
      }
    }
  }
  return forms;
}

TEST(LseForms, EveryFormTranslatesToTheReferences) {
  for (const LseForm& form : all_forms()) {
    for (const bool counts_sink : {true, false}) {
      const HostTensor lse =
          reference_lse(written(form, counts_sink).view(), form, sinks().view(), counts_sink);
      ASSERT_EQ(lse.shape(), (std::vector<std::int64_t>{2, 3}));
      for (std::int64_t h = 0; h < 2; ++h) {
        for (std::int64_t t = 0; t < 3; ++t) {
          const double sum = weight(h, t) + (counts_sink ? kSinkWeights[h] : 0.0);
          EXPECT_NEAR(lse.value(h, t), std::log(sum), 1e-15);
        }
      }
    }
  }
}

// One head, one token.
double one(double lse, const LseForm& form, double sink = -kInf, bool counts_sink = true) {
  const HostTensor in(DType::kF64, {1, 1}, {lse});
  const HostTensor sink_tensor(DType::kF64, {1}, {sink});
  return reference_lse(in.view(), form, sink == -kInf ? TensorView{} : sink_tensor.view(),
                       counts_sink)
      .value(0, 0);
}

TEST(LseForms, TheReferencesFormIsKeptBitForBit) {
  for (const double lse : {0.1, -700.25, kInf, -kInf}) EXPECT_EQ(one(lse, {}, 3.0), lse);
}

TEST(LseForms, EmptyRowsAreMinusInfinityOrTheSink) {
  const LseForm plus = {.empty = EmptyLse::kPlusInfinity};
  const LseForm plus_excluded = {.empty = EmptyLse::kPlusInfinity, .includes_sink = false};
  const LseForm minus_excluded = {.includes_sink = false};
  EXPECT_EQ(one(kInf, plus), -kInf);
  EXPECT_EQ(one(-kInf, plus), -kInf);
  EXPECT_EQ(one(-kInf, {}), -kInf);
  EXPECT_EQ(one(kInf, plus_excluded), -kInf);
  EXPECT_EQ(one(kInf, plus_excluded, 5.0), 5.0);
  EXPECT_EQ(one(-kInf, minus_excluded, 5.0), 5.0);
  EXPECT_EQ(one(kInf, plus_excluded, 5.0, false), -kInf);
}

TEST(LseForms, SinksAtTheEndsOfTheRange) {
  const LseForm excluded = {.includes_sink = false};
  EXPECT_EQ(one(700.0, excluded, -700.0), 700.0);
  EXPECT_EQ(one(-2000.0, excluded, 2000.0), 2000.0);
  EXPECT_EQ(one(1.0, excluded, kInf), kInf);
  // A sink of +inf counted in +inf is no empty row.
  EXPECT_EQ(one(kInf, {.empty = EmptyLse::kPlusInfinity}, kInf), kInf);
  EXPECT_EQ(one(kInf, {.empty = EmptyLse::kPlusInfinity}, kInf, false), -kInf);
}

TEST(LseForms, NaNStaysNaN) {
  for (const LseForm& form : all_forms()) EXPECT_TRUE(std::isnan(one(kNaN, form, 1.0)));
  EXPECT_TRUE(std::isnan(one(1.0, {.includes_sink = false}, kNaN)));
}

TEST(LseForms, SinkAddedAfterwardsIsTheSinkTheReferenceCounts) {
  TensorPool pool;
  AttentionOp op;
  op.query = pool.values(DType::kF32, {3, 1, 1}, {1.0, -2.0, 0.5});
  op.query_start_loc = pool.values(DType::kI32, {2}, {0, 3});
  op.seq_lens = pool.values(DType::kI32, {1}, {2});  // the first row sees nothing
  op.kv.kv_start_loc = pool.values(DType::kI32, {2}, {0, 2});
  op.kv.key = op.kv.value = pool.values(DType::kF32, {2, 1, 1}, {3.0, -1.5});
  op.sinks = pool.values(DType::kF32, {1}, {0.75});
  op.mask.causal = true;
  const OperationAnswer counted{op};
  op.lse_includes_sink = false;
  const OperationAnswer apart{op};
  const HostTensor lse = reference_lse(apart.view("lse"), {.includes_sink = false}, op.sinks, true);
  for (std::int64_t t = 0; t < 3; ++t) {
    EXPECT_NEAR(lse.value(0, t), value_at(counted.view("lse"), 0, t), 1e-15);
  }
}

TEST(LseForms, RejectsTensorsThatDoNotFit) {
  const HostTensor lse(DType::kF64, {2, 3});
  const HostTensor three(DType::kF64, {3});
  EXPECT_THROW(reference_lse(three.view(), {}, TensorView{}, true), Error);
  EXPECT_THROW(reference_lse(lse.view(), {}, three.view(), true), Error);
  EXPECT_NO_THROW(
      reference_lse(lse.view(), {.layout = LseLayout::kTokensHeads}, three.view(), true));
}

TEST(TopkSelection, AcceptsExactlyTheChoicesThatLeaveNothingHigher) {
  const std::vector<double> logits = {2, 7, 2, -1, 7, 2};
  for (unsigned subset = 0; subset < 64; ++subset) {
    std::vector<std::int32_t> chosen;
    double least = kInf;
    double highest_left = -kInf;
    for (int i = 0; i < 6; ++i) {
      const double logit = logits[static_cast<std::size_t>(i)];
      if ((subset >> i & 1) != 0) {
        chosen.push_back(i);
        least = std::min(least, logit);
      } else {
        highest_left = std::max(highest_left, logit);
      }
    }
    const bool right = highest_left <= least;
    EXPECT_EQ(topk_offence(logits, chosen).empty(), right) << subset;
  }
}

TEST(TopkSelection, TiesOfTheIndexerMayFallEitherWay) {
  TensorPool pool;
  IndexerOp op;
  op.query = pool.values(DType::kF32, {1, 2, 2}, {1, 2, -1, 0});
  op.key = pool.values(DType::kF32, {5, 2}, {1, 1, -2, 0, 0, 4, 0, 9, 1, 1});
  op.weights = pool.values(DType::kF32, {1, 2}, {2, 3});
  op.k_start = pool.values(DType::kI32, {1}, {0});
  op.k_end = pool.values(DType::kI32, {1}, {3});
  // Scores 6, 6, 16; the last two keys are outside the range.
  const std::vector<double> logits = OperationAnswer(op).values("logits");
  using Chosen = std::vector<std::int32_t>;
  EXPECT_EQ(topk_offence(logits, Chosen{2, 0}), "");
  EXPECT_EQ(topk_offence(logits, Chosen{1, 2}), "");
  EXPECT_EQ(topk_offence(logits, Chosen{0, 1}), "logit 6 is chosen as number 0, expected 16");
  EXPECT_EQ(topk_offence(logits, Chosen{2, 2}), "chosen[1] is 2, chosen twice");
  EXPECT_EQ(topk_offence(logits, Chosen{2, -1}), "1 keys are chosen, expected 2");
  EXPECT_EQ(topk_offence(logits, Chosen{2, 5}), "chosen[1] is 5, outside [0, 5)");
  EXPECT_EQ(topk_offence(logits, Chosen{2, -2}), "chosen[1] is -2, outside [0, 5)");
}

TEST(TopkSelection, FewerThanKKeysArePaddedWithMinusOne) {
  const std::vector<double> logits = {-kInf, 3, -kInf, 1};
  using Chosen = std::vector<std::int32_t>;
  EXPECT_EQ(topk_offence(logits, Chosen{-1, 3, 1, -1}), "");
  EXPECT_EQ(topk_offence(logits, Chosen{3, 1, 0}), "3 keys are chosen, expected 2");
  EXPECT_EQ(topk_offence({}, Chosen{-1, -1}), "");
}

TEST(TopkSelection, NaNHasNoRank) {
  EXPECT_THROW(topk_offence(std::vector<double>{1, kNaN}, std::vector<std::int32_t>{0}), Error);
}

}  // namespace
}  // namespace attn
