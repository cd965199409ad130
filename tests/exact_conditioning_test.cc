// Conditioning sums of exact answers: against sums in double, never below known values, and exact
// where the true value is a number of the format. Constants as in exact_answer_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/cpu_definition.h"
#include "tests/cpu_random_problem.h"
#include "tests/exact_answers.h"
#include "tests/exact_row.h"

namespace attn {
namespace {

// u = 0, 1/2, -5/4; v = 1, -2, 3; Z = sum(e^u); p = e^u / Z. With q = 1: a = |u|.
TEST(ExactConditioning, RoundsSumsUpward) {
  const ExactAnswer answer{ExactRow({0, 0.5, -1.25}, {{1}, {-2}, {3}}).op};
  EXPECT_EQ(answer.values("cond_pv").at(0), 0x1.c1c58p+0);    // up32(sum(p * |v|))
  EXPECT_EQ(answer.values("cond_puv").at(0), 0x1.5d96fap-1);  // up32(sum(p * (1/2 - u) * |v|))
  EXPECT_EQ(answer.values("cond_pav").at(0), 0x1.db003p-1);   // up32(sum(p * |u| * |v|))
  EXPECT_EQ(answer.values("cond_v").at(0), 6.0);
  EXPECT_EQ(answer.row(0, 0, kRowPa), 0x1.9c87e8993b03bp-2);   // up64(sum(p * |u|))
  EXPECT_EQ(answer.row(0, 0, kRowPd), 0x1.5d59323533527p-2);   // up64(sum(p * (1/2 - u)))
  EXPECT_EQ(answer.row(0, 0, kRowLse), 0x1.13a825b91f03cp+0);  // near(Z.ln())
  EXPECT_EQ(answer.row(0, 0, kRowMax), 0.5);
  EXPECT_EQ(answer.row(0, 0, kRowKeysMax), 0.5);
  EXPECT_EQ(answer.row(0, 0, kRowAMax), 1.25);
  EXPECT_EQ(answer.row(0, 0, kRowDMax), 1.75);
  EXPECT_EQ(answer.row(0, 0, kRowValueMax), 3.0);
  EXPECT_EQ(answer.row(0, 0, kRowKeyL1), 1.25);
  EXPECT_EQ(answer.row(0, 0, kRowQueryMax), 1.0);
}

TEST(ExactConditioning, RoundsTheMassDownwardAndTheSinkDistanceUpward) {
  ExactRow row({0, 0, 0}, {{1}, {2}, {4}});
  row.set_sink(1.0);
  row.op.lse_includes_sink = false;  // changes lse only
  const ExactAnswer answer{row.op};
  EXPECT_EQ(answer.row(0, 0, kRowMass), 0x1.0c9cb62275feap-1);          // down64(3 / (3 + e))
  EXPECT_EQ(answer.row(0, 0, kRowSinkDistance), 0x1.e6c693bb1402bp-2);  // up64(e / (3 + e))
  EXPECT_EQ(answer.row(0, 0, kRowLse), 0x1.be610d0dde94cp+0);           // near((3 + e).ln())
  EXPECT_EQ(answer.row(0, 0, kRowMax), 1.0);
  EXPECT_EQ(answer.row(0, 0, kRowKeysMax), 0.0);
  EXPECT_EQ(answer.row(0, 0, kRowDMax), 1.0);
}

TEST(ExactConditioning, MeasuresTheDistanceOfAWeakSinkFromTheKeys) {
  ExactRow row({0}, {{1}});
  row.set_sink(-5.0);
  const ExactAnswer answer{row.op};
  EXPECT_EQ(answer.row(0, 0, kRowDMax), 5.0);
  EXPECT_EQ(answer.row(0, 0, kRowMax), 0.0);
}

TEST(ExactConditioning, IsExactWhereTheTrueValueIs) {
  // Every weight is rounded, yet they sum to 1, and to v with a constant V.
  const ExactAnswer answer{ExactRow({0.3, -0.7, 1.9, 0.1}, {{3}, {3}, {3}, {3}}).op};
  EXPECT_EQ(answer.row(0, 0, kRowMass), 1.0);
  EXPECT_EQ(answer.values("cond_pv").at(0), 3.0);
  EXPECT_EQ(answer.values("out").at(0), 3.0);
  for (int i = 1; i <= 40; ++i) {
    const double x = i * 0.37;
    const double v = i;
    const ExactAnswer one{ExactRow({x, -0.7 * x, 0.1 * x * x, 1}, {{v}, {v}, {v}, {v}}).op};
    EXPECT_EQ(one.values("cond_pv").at(0), v);
    EXPECT_EQ(one.values("out").at(0), v);
    EXPECT_EQ(one.bits, 400) << i;
    // A sink as strong as each of two keys: p = 1/3.
    ExactRow row({x, x - 1, x}, {{3}, {0}, {3}});
    row.op.mask.attn_mask = row.pool.values(DType::kBool, {1, 1, 1, 3}, {1, 0, 1});
    row.set_sink(x);
    EXPECT_EQ(ExactAnswer(row.op).values("cond_pv").at(0), 2.0);
  }
}

TEST(ExactConditioning, SeesTheSmallestContributions) {
  // p = e^-1000000 of |v| = 1: below every float32, above 0.
  const ExactAnswer answer{ExactRow({0, -1e6}, {{0}, {1}}).op};
  EXPECT_EQ(answer.values("cond_pv").at(0), 0x1p-149);
  EXPECT_EQ(answer.values("out").at(0), 0.0);
  EXPECT_EQ(ExactAnswer(ExactRow({0, -1e30}, {{0}, {1}}).op).values("cond_pv").at(0), 0x1p-149);
}

TEST(ExactConditioning, SumsTheMagnitudesOfBiases) {
  ExactRow row({0, 0}, {{1}, {1}});
  row.op.bias.alibi_form = AlibiForm::kAbs;  // -2 |1 - k|
  row.op.bias.alibi_slopes = row.pool.values(DType::kF32, {1}, {2});
  row.op.bias.attn_bias = row.pool.values(DType::kF32, {1, 1, 1, 2}, {2, 0.5});
  row.op.bias.qq_bias = row.pool.values(DType::kF32, {1, 1}, {-0.75});  // key 1 only
  const ExactAnswer answer{row.op};
  EXPECT_EQ(answer.row(0, 0, kRowBiasMax), 4.0);
  EXPECT_EQ(answer.row(0, 0, kRowMax), 0.0);
  EXPECT_EQ(answer.row(0, 0, kRowDMax), 0.25);
}

TEST(ExactConditioning, SpansFromTheFirstToTheLastVisibleKey) {
  ExactRow row({0, 0, 0, 0, 0}, {{1}, {1}, {1}, {1}, {1}});
  row.op.mask.attn_mask = row.pool.values(DType::kBool, {1, 1, 1, 5}, {0, 1, 0, 1, 0});
  const ExactAnswer answer{row.op};
  EXPECT_EQ(answer.row(0, 0, kRowVisible), 2.0);
  EXPECT_EQ(answer.row(0, 0, kRowSpan), 3.0);
}

// Random tensors over two requests, four heads on two, with window, cap, ALiBi and sinks, summed in
// double from the definition.
struct WidePerRow {
  explicit WidePerRow(std::uint64_t seed) : state(seed) {
    op.query = random({kTokens, kHeads, kSize});
    op.query_start_loc = pool.values(DType::kI32, {3}, {0, 3, 4});
    op.seq_lens = pool.values(DType::kI32, {2}, {7, 9});
    op.kv.kv_start_loc = pool.values(DType::kI32, {3}, {0, 7, 16});
    op.kv.key = random({16, kKvHeads, kSize});
    op.kv.value = random({16, kKvHeads, kSizeV});
    op.kv.k_scale = pool.values(DType::kF32, {2}, {1.5, 0.75});
    op.q_scale = pool.values(DType::kF32, {1}, {1.25});
    op.scale = -0.5;
    op.logits_soft_cap = 3.0;
    op.mask.causal = true;
    op.mask.window_left = 4;
    op.bias.alibi_form = AlibiForm::kRow;
    op.bias.alibi_slopes = pool.values(DType::kF32, {4}, {0.5, 0.25, 0.125, 1});
    op.sinks = pool.values(DType::kF32, {4}, {0.5, -1, 3, -INFINITY});
  }

  double next() {  // splitmix64, in (-2, 2)
    std::uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return std::ldexp(static_cast<double>((z ^ (z >> 31)) >> 11), -51) - 2.0;
  }

  TensorView random(const std::vector<std::int64_t>& shape) {
    std::int64_t n = 1;
    for (const std::int64_t axis : shape) n *= axis;
    std::vector<double> values;
    for (std::int64_t i = 0; i < n; ++i) values.push_back(next());
    return pool.values(DType::kF32, shape, values);
  }

  static constexpr std::int64_t kTokens = 4, kHeads = 4, kKvHeads = 2, kSize = 5, kSizeV = 3;
  std::uint64_t state;
  TensorPool pool;
  AttentionOp op;
};

// Sums of one row in double.
struct DoubleSums {
  std::vector<double> row = std::vector<double>(kNumRowFields, 0.0);
  std::vector<double> pv, pav, puv, v;
};

DoubleSums sums_in_double(const AttentionOp& op, std::int64_t r, std::int64_t token,
                          std::int64_t head) {
  const std::int64_t kv_head = head / 2;
  const std::int64_t q = op.seq_len(r) - op.query_len(r) + token - op.query_start(r);
  const double sink = value_at(op.sinks, head);
  std::vector<std::int64_t> keys;
  for (std::int64_t k = std::max<std::int64_t>(0, q - 4); k <= q; ++k) keys.push_back(k);
  std::vector<double> u, a;
  DoubleSums sums;
  const auto field = [&](RowField f) -> double& { return sums.row[f]; };
  const auto raise = [&](RowField f, double x) { field(f) = std::max(field(f), x); };
  for (const std::int64_t k : keys) {
    double s = 0, size = 0, key_l1 = 0, query_l1 = 0;
    for (std::int64_t d = 0; d < 5; ++d) {
      const double x = value_at(op.query, token, head, d) * 1.25;
      const double y = decode_key(op.kv, r, k, kv_head, d);
      s += x * y;
      size += std::fabs(x * y);
      key_l1 += std::fabs(y);
      query_l1 += std::fabs(x);
      raise(kRowQueryMax, std::fabs(x));
      raise(kRowKeyMax, std::fabs(y));
    }
    const double bias = value_at(op.bias.alibi_slopes, head) * static_cast<double>(k - q);
    u.push_back(3 * std::tanh(-0.5 * s / 3) + bias);
    a.push_back(0.5 * size);
    raise(kRowAMax, 0.5 * size);
    raise(kRowBiasMax, std::fabs(bias));
    raise(kRowKeyL1, 0.5 * key_l1);
    raise(kRowQueryL1, 0.5 * query_l1);
  }
  field(kRowKeysMax) = *std::max_element(u.begin(), u.end());
  field(kRowMax) = std::max(field(kRowKeysMax), sink);
  double z = std::exp(sink - field(kRowMax));
  for (const double x : u) z += std::exp(x - field(kRowMax));
  field(kRowLse) = field(kRowMax) + std::log(z);
  field(kRowVisible) = field(kRowSpan) = static_cast<double>(keys.size());
  if (std::isfinite(sink)) {
    const double distance = std::fabs(sink - field(kRowKeysMax));
    field(kRowSinkDistance) = std::exp(sink - field(kRowLse)) * distance;
    raise(kRowDMax, distance);
  }
  for (std::vector<double>* each : {&sums.pv, &sums.pav, &sums.puv, &sums.v}) each->resize(3);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double p = std::exp(u[i] - field(kRowLse)), d = field(kRowMax) - u[i];
    field(kRowMass) += p;
    field(kRowPa) += p * a[i];
    field(kRowPd) += p * d;
    raise(kRowDMax, d);
    for (std::size_t j = 0; j < 3; ++j) {
      const double v =
          std::fabs(decode_value(op.kv, r, keys[i], kv_head, static_cast<std::int64_t>(j)));
      sums.pv[j] += p * v;
      sums.pav[j] += p * a[i] * v;
      sums.puv[j] += p * d * v;
      sums.v[j] += v;
      raise(kRowValueMax, v);
    }
  }
  return sums;
}

// Within 1e-13 of itself, and above by one float32 at most.
void expect_upward_f32(double stored, double computed) {
  EXPECT_GE(stored, computed * (1 - 1e-13));
  EXPECT_LE(stored, computed * (1 + 1e-13 + 0x1p-23));
}

TEST(ExactConditioning, AgreesWithSumsInDouble) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const WidePerRow problem(seed);
    const ExactAnswer answer{problem.op};
    for (std::int64_t token = 0; token < 4; ++token) {
      for (std::int64_t head = 0; head < 4; ++head) {
        const DoubleSums sums = sums_in_double(problem.op, token / 3, token, head);
        for (int f = 0; f < kNumRowFields; ++f) {
          const double expected = sums.row[static_cast<std::size_t>(f)];
          EXPECT_NEAR(answer.row(token, head, static_cast<RowField>(f)), expected,
                      1e-13 * (1 + std::fabs(expected)))
              << "field " << f << " of token " << token << ", head " << head;
        }
        for (std::size_t j = 0; j < 3; ++j) {
          const auto at = [&](const char* name) {
            return value_at(answer.view(name), token, head, j);
          };
          expect_upward_f32(at("cond_pv"), sums.pv[j]);
          expect_upward_f32(at("cond_pav"), sums.pav[j]);
          expect_upward_f32(at("cond_puv"), sums.puv[j]);
          expect_upward_f32(at("cond_v"), sums.v[j]);
        }
      }
    }
  }
}

// Every attribute, layout and encoding, against a definition in double that shares nothing.
TEST(ExactAnswer, AgreesWithTheDefinitionInDouble) {
  for (std::uint64_t seed = 100; seed < 130; ++seed) {
    cpu_tests::RandomProblem problem;
    cpu_tests::make_random_problem(seed, 0xFF, problem);
    problem.op.output_scale = TensorView{};
    const cpu_tests::Answer expected = cpu_tests::define(problem.op);
    const ExactAnswer answer{problem.op};
    const auto expect_near = [&](const std::vector<double>& actual,
                                 const std::vector<double>& wanted, double size) {
      ASSERT_EQ(actual.size(), wanted.size());
      for (std::size_t i = 0; i < actual.size(); ++i) {
        if (actual[i] == wanted[i]) continue;
        EXPECT_LE(std::fabs(actual[i] - wanted[i]), 1e-11 * size) << "seed " << seed << " at " << i;
      }
    };
    expect_near(answer.values("out"), expected.out, expected.largest_value);
    expect_near(answer.values("lse"), expected.lse, 1.0);
  }
}

}  // namespace
}  // namespace attn
