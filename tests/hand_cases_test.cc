// Small cases worked out by hand, each after a public report of a wrong kernel. Expected values are
// fractions and logarithms; float64 backends meet them to 1e-12, float32 ones to 1e-6.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attn/cpu_backend.h"
#include "attn/mask.h"
#include "attn/reference.h"
#include "core/special_values.h"
#include "property_tests/answer.h"
#include "property_tests/hand_problem.h"
#include "property_tests/problem_data.h"

namespace attn::property_tests {
namespace {

double zero(const HandPlace&) { return 0.0; }
double one(const HandPlace&) { return 1.0; }
double bit_of_position(const HandPlace& at) {
  return std::ldexp(1.0, static_cast<int>(at.position));
}

HandElement listed(std::vector<double> by_position) {
  return [values = std::move(by_position)](const HandPlace& at) {
    return values[static_cast<std::size_t>(at.position)];
  };
}

// All scores 0, V[k] = 2^k: out times the number of visible keys is a bitmask of them.
LogicalProblem uniform_probe(std::vector<HandSizes::Request> requests) {
  return hand_problem({.requests = std::move(requests)}, zero, zero, bit_of_position);
}

class HandCase : public testing::TestWithParam<std::string> {
 protected:
  HandCase() : backend_(GetParam() == "CPU" ? make_cpu_backend() : make_reference_backend()) {}

  bool is_float64() const { return backend_->capabilities().output_dtypes[0] == DType::kF64; }
  DType widest() const { return is_float64() ? DType::kF64 : DType::kF32; }

  Answer answer(const LogicalProblem& problem, const MemoryForm& form = {}) const {
    const Answer result = property_tests::answer(*backend_, problem, form);
    EXPECT_EQ(backend_->name(), GetParam());
    return result;
  }

  double allowed(double expected) const {
    return (is_float64() ? 1e-12 : 1e-6) * (1.0 + std::fabs(expected));
  }

  void expect_number(double actual, double expected, const std::string& what) const {
    if (std::isinf(expected)) {
      EXPECT_EQ(actual, expected) << what;
    } else {
      EXPECT_NEAR(actual, expected, allowed(expected)) << what;
    }
  }

  // Every dim of out, and lse, of the tokens of one head.
  void expect_rows(const Answer& answer, const std::vector<double>& out,
                   const std::vector<double>& lse, std::int64_t head = 0) const {
    ASSERT_EQ(answer.num_tokens, static_cast<std::int64_t>(out.size()));
    for (std::int64_t token = 0; token < answer.num_tokens; ++token) {
      const auto row = static_cast<std::size_t>(token);
      const std::string what = "head " + std::to_string(head) + " token " + std::to_string(token);
      for (std::int64_t d = 0; d < answer.head_size_v; ++d) {
        expect_number(answer.out_at(token, head, d), out[row], "out, " + what);
      }
      if (!lse.empty()) expect_number(answer.lse_at(token, head), lse[row], "lse, " + what);
    }
  }

  std::unique_ptr<Backend> backend_;
};

INSTANTIATE_TEST_SUITE_P(, HandCase, testing::Values("REFERENCE", "CPU"),
                         [](const auto& named) { return named.param; });

// H01: a window given to a kernel that counts differently.
TEST_P(HandCase, H01WindowCountsTheRowsOwnKey) {
  LogicalProblem problem = uniform_probe({{6, 6}});
  problem.settings.mask.window_left = 3 - 1;
  const double ln_3 = std::log(3.0);
  expect_rows(answer(problem), {1.0, 3.0 / 2, 7.0 / 3, 14.0 / 3, 28.0 / 3, 56.0 / 3},
              {0.0, std::log(2.0), ln_3, ln_3, ln_3, ln_3});

  problem.settings.mask.window_left = 1 - 1;
  const Answer own_key = answer(problem);
  for (std::int64_t row = 0; row < 6; ++row) {
    EXPECT_EQ(own_key.out_at(row, 0, 0), std::ldexp(1.0, static_cast<int>(row)));
    EXPECT_EQ(own_key.lse_at(row, 0), 0.0);
  }

  problem.settings.mask.window_left = MaskSpec::kUnbounded;
  const Answer no_window = answer(problem);
  for (const std::int64_t window : {6, 7, 100}) {
    problem.settings.mask.window_left = window - 1;
    EXPECT_EQ(bit_difference(answer(problem), no_window), "") << "window " << window;
  }
}

// H02: the edge of a window when there is context.
TEST_P(HandCase, H02WindowWithContext) {
  LogicalProblem problem = uniform_probe({{3, 9}});
  problem.settings.mask.window_left = 4 - 1;
  const double ln_4 = std::log(4.0);
  expect_rows(answer(problem, {.cache = CacheForm::kPagedNHD, .block_size = 4}),
              {30.0, 60.0, 120.0}, {ln_4, ln_4, ln_4});
}

// H03: every image sees every other image.
TEST_P(HandCase, H03TwoImages) {
  LogicalProblem problem = uniform_probe({{9, 9}});
  problem.has_mm_ranges = true;
  problem.request(0).mm_ranges = {{1, 3}, {5, 7}};
  expect_rows(
      answer(problem),
      {1.0, 15.0 / 4, 15.0 / 4, 15.0 / 4, 31.0 / 5, 255.0 / 8, 255.0 / 8, 255.0 / 8, 511.0 / 9},
      {});
}

// H04: an image longer than the window.
TEST_P(HandCase, H04ImageLongerThanTheWindow) {
  LogicalProblem problem = uniform_probe({{8, 8}});
  problem.settings.mask.window_left = 3 - 1;
  problem.has_mm_ranges = true;
  problem.request(0).mm_ranges = {{1, 6}};
  problem.settings.mask.mm_prefix_clamp = true;
  expect_rows(answer(problem),
              {1.0, 127.0 / 7, 127.0 / 7, 21.0, 124.0 / 5, 30.0, 112.0 / 3, 224.0 / 3}, {});
  problem.settings.mask.mm_prefix_clamp = false;
  expect_rows(answer(problem), {1.0, 127.0 / 7, 127.0 / 7, 21.0, 21.0, 21.0, 21.0, 224.0 / 3}, {});
}

// H10: a sink enters the softmax exactly once.
TEST_P(HandCase, H10SinkOnceOverSplits) {
  for (const std::int64_t query_len : {1, 4}) {  // decode, and prefill with the same last row
    LogicalProblem problem =
        hand_problem({.requests = {{query_len, 4}}, .query_dtype = widest(), .kv_dtype = widest()},
                     one, listed({std::log(1.0), std::log(2.0), std::log(3.0), std::log(6.0)}),
                     listed({6.0, 3.0, 2.0, 1.0}));
    problem.sinks = HostTensor(widest(), {1}, {std::log(4.0)});
    for (const std::int64_t keys_per_part : {0, 4, 2, 1}) {
      problem.settings.exec.kv_chunk = keys_per_part;
      problem.settings.lse_includes_sink = true;
      const Answer with = answer(problem);
      expect_number(with.out_at(query_len - 1, 0, 0), 3.0 / 2, "out");
      expect_number(with.lse_at(query_len - 1, 0), std::log(16.0), "lse with the sink");
      problem.settings.lse_includes_sink = false;
      expect_number(answer(problem).lse_at(query_len - 1, 0), std::log(12.0), "lse without");
    }
  }
}

TEST_P(HandCase, H10SinkWhenTheFirstSplitIsEmpty) {
  LogicalProblem problem = hand_problem({.requests = {{1, 8}}}, zero, zero, one);
  problem.settings.mask.window_left = 3 - 1;
  problem.sinks = HostTensor(DType::kF32, {1}, {0.0});
  for (const std::int64_t keys_per_part : {0, 4}) {
    problem.settings.exec.kv_chunk = keys_per_part;
    expect_rows(answer(problem), {3.0 / 4}, {std::log(4.0)});
  }
}

TEST_P(HandCase, H10SinkOfMinusInfinityIsNone) {
  LogicalProblem problem =
      hand_problem({.requests = {{1, 2}}, .num_heads = 2}, zero, zero, listed({1.0, 3.0}));
  problem.sinks = HostTensor(widest(), {2}, {std::log(2.0), -kInf});
  const Answer result = answer(problem);
  expect_rows(result, {1.0}, {std::log(4.0)}, 0);
  expect_rows(result, {2.0}, {std::log(2.0)}, 1);
}

// H11: requests with nothing to attend to; the outputs hold something before.
class Prefilled {
 public:
  Prefilled(const Backend& backend, const LogicalProblem& problem)
      : out(backend.capabilities().output_dtypes[0],
            {problem.num_tokens(), problem.num_heads, problem.head_size_v}),
        lse(out.dtype(), {problem.num_heads, problem.num_tokens()}) {
    out.fill(encode(out.dtype(), kNaN, Overflow::kInfinity));
    lse.fill(encode(lse.dtype(), 7.0, Overflow::kInfinity));
    const ProblemData data(problem);
    Outputs outputs;
    outputs.out = out.view();
    outputs.lse = lse.view();
    run_once(backend, data.problem(), outputs);
  }

  HostTensor out;
  HostTensor lse;
};

TEST_P(HandCase, H11MoreRowsThanKeys) {
  const Prefilled result(*backend_,
                         hand_problem({.requests = {{4, 2}}}, zero, zero, listed({1.0, 2.0})));
  const std::vector<double> out = {0.0, 0.0, 1.0, 3.0 / 2};
  const std::vector<double> lse = {-kInf, -kInf, 0.0, std::log(2.0)};
  for (std::size_t row = 0; row < 4; ++row) {
    expect_number(result.out.value(row, 0, 0), out[row], "out");
    expect_number(result.lse.value(0, row), lse[row], "lse");
  }
}

TEST_P(HandCase, H11DecodeOfARequestWithoutKeys) {
  const Prefilled result(*backend_, uniform_probe({{1, 3}, {1, 0}, {1, 2}}));
  const std::vector<double> out = {7.0 / 3, 0.0, 3.0 / 2};
  const std::vector<double> lse = {std::log(3.0), -kInf, std::log(2.0)};
  for (std::size_t row = 0; row < 3; ++row) {
    expect_number(result.out.value(row, 0, 0), out[row], "out");
    expect_number(result.lse.value(0, row), lse[row], "lse");
  }
}

// H15: lse of grouped heads, all values distinct.
TEST_P(HandCase, H15LseOfGroupedHeads) {
  LogicalProblem problem = hand_problem(
      {.requests = {{1, 3}, {1, 5}}, .num_heads = 4, .num_kv_heads = 2},
      [](const HandPlace& at) { return static_cast<double>(at.head) / 2.0; }, one,
      [](const HandPlace& at) { return static_cast<double>(at.position); });
  for (const std::int64_t num_splits : {0, 1, 2}) {
    problem.settings.exec.num_splits = num_splits;
    const Answer result = answer(problem);
    for (std::int64_t head = 0; head < 4; ++head) {
      const double half = static_cast<double>(head) / 2.0;
      expect_rows(result, {1.0, 2.0}, {half + std::log(3.0), half + std::log(5.0)}, head);
    }
  }
}

// H16: NaN in memory that is not part of the sequence: blocks [7,2,9,5] of 4, 13 keys, table row
// padded with block 0.
class PoisonedCache {
 public:
  PoisonedCache(std::int64_t query_len, double key_poison, double value_poison)
      : key_(DType::kF32, {10, 4, 1, 1}),
        value_(DType::kF32, {10, 4, 1, 1}),
        query_(DType::kF32, {query_len, 1, 1}),
        table_(DType::kI32, {1, 6}, {7, 2, 9, 5, 0, 0}),
        starts_(DType::kI32, {2}, {0, static_cast<double>(query_len)}),
        lengths_(DType::kI32, {1}, {13}) {
    const std::vector<std::int64_t> blocks = {7, 2, 9, 5};
    for (std::int64_t k = 0; k < 13; ++k) {
      value_.set(static_cast<double>(k), blocks[static_cast<std::size_t>(k / 4)], k % 4, 0, 0);
    }
    for (std::int64_t slot = 0; slot < 4; ++slot) poison(0, slot, key_poison, value_poison);
    for (std::int64_t slot = 1; slot < 4; ++slot) poison(5, slot, key_poison, value_poison);
  }

  AttentionOp op() const {
    AttentionOp op;
    op.query = query_.view();
    op.query_start_loc = starts_.view();
    op.seq_lens = lengths_.view();
    op.kv.layout = KvLayout::kPaged;
    op.kv.key = key_.view();
    op.kv.value = value_.view();
    op.kv.block_table = table_.view();
    op.mask.causal = true;
    return op;
  }

 private:
  void poison(std::int64_t block, std::int64_t slot, double key, double value) {
    key_.set(key, block, slot, 0, 0);
    value_.set(value, block, slot, 0, 0);
  }

  HostTensor key_, value_, query_, table_, starts_, lengths_;
};

TEST_P(HandCase, H16PoisonBesideTheSequence) {
  for (const std::int64_t query_len : {1, 5}) {        // decode, prefill
    for (const std::int64_t keys_per_part : {0, 4}) {  // one pass, split
      const auto run = [&](double key_poison, double value_poison) {
        const PoisonedCache cache(query_len, key_poison, value_poison);
        AttentionOp op = cache.op();
        op.exec.kv_chunk = keys_per_part;
        return property_tests::answer(*backend_, op);
      };
      const Answer clean = run(0.0, 0.0);
      expect_number(clean.out_at(query_len - 1, 0, 0), 6.0, "out");
      expect_number(clean.lse_at(query_len - 1, 0), std::log(13.0), "lse");
      for (const double poison : {kNaN, kInf, -kInf}) {
        EXPECT_EQ(bit_difference(run(poison, poison), clean), "") << poison;
        EXPECT_EQ(bit_difference(run(poison, 0.0), clean), "") << poison << " in K";
        EXPECT_EQ(bit_difference(run(0.0, poison), clean), "") << poison << " in V";
      }
    }
  }
}

// H18: KV scales accepted but not applied. k_scale is float32, so that out and lse are those of
// w = e^(2 k_scale), 3 to eight digits.
TEST_P(HandCase, H18ScalesOfAnFp8Cache) {
  const auto k_scale = static_cast<float>(std::log(3.0) / 2.0);
  const double w = std::exp(2.0 * static_cast<double>(k_scale));
  const double out = 0.5 * (w - 1.0) / (w + 1.0);
  ASSERT_NEAR(out, 0.25, 1e-8);
  for (const std::int64_t query_len : {1, 2}) {
    LogicalProblem problem =
        hand_problem({.requests = {{query_len, 2}}, .kv_dtype = DType::kF8E4M3FN}, one,
                     listed({2.0, 0.0}), listed({1.0, -1.0}));
    problem.k_scale = HostTensor(DType::kF32, {1}, {k_scale});
    problem.v_scale = HostTensor(DType::kF32, {1}, {0.5});
    for (const CacheForm cache : {CacheForm::kVarlen, CacheForm::kPagedNHD, CacheForm::kPagedHND,
                                  CacheForm::kPackedNHD, CacheForm::kPackedHND}) {
      const Answer result = answer(problem, {.cache = cache, .block_size = 1});
      expect_number(result.out_at(query_len - 1, 0, 0), out, "out");
      expect_number(result.lse_at(query_len - 1, 0), std::log(w + 1.0), "lse");
    }
  }
}

// H19: soft cap, overflow and order.
TEST_P(HandCase, H19SoftCapSaturates) {
  LogicalProblem problem = hand_problem(
      {.requests = {{1, 3}}}, one, listed({4500.0, 10000.0, -10000.0}), listed({1.0, 2.0, 4.0}));
  problem.settings.logits_soft_cap = 50.0;
  expect_rows(answer(problem), {1.5}, {50.0 + std::log(2.0)});

  problem = hand_problem({.requests = {{1, 3}}}, one, listed({500.0, -500.0, 0.0}),
                         listed({1.0, 2.0, 4.0}));
  problem.settings.logits_soft_cap = 5.0;
  const double sum = std::exp(5.0) + std::exp(-5.0) + 1.0;
  const double out = (std::exp(5.0) + 2.0 * std::exp(-5.0) + 4.0) / sum;
  ASSERT_NEAR(out, 1.020123, 1e-6);
  ASSERT_NEAR(std::log(sum), 5.006760, 1e-6);
  expect_rows(answer(problem), {out}, {std::log(sum)});
}

TEST_P(HandCase, H19SoftCapComesBeforeTheMask) {
  LogicalProblem problem = hand_problem({.requests = {{2, 2}}}, zero, zero, listed({2.0, 1000.0}));
  problem.settings.logits_soft_cap = 1.0;
  const Answer result = answer(problem);
  EXPECT_EQ(result.out_at(0, 0, 0), 2.0);
  EXPECT_EQ(result.lse_at(0, 0), 0.0);
}

// H20: a group of seven heads, and dims beyond the first tile.
TEST_P(HandCase, H20GroupOfSeven) {
  for (const std::int64_t query_len : {1, 5}) {
    const Answer result = answer(
        hand_problem({.requests = {{query_len, 6}}, .num_heads = 28, .num_kv_heads = 4}, zero, zero,
                     [](const HandPlace& at) { return static_cast<double>(at.head + 1); }));
    for (std::int64_t head = 0; head < 28; ++head) {
      expect_rows(result,
                  std::vector<double>(static_cast<std::size_t>(query_len),
                                      static_cast<double>(head / 7 + 1)),
                  {}, head);
    }
  }
}

TEST_P(HandCase, H20EveryDimCounts) {
  for (const std::int64_t size : {64, 80, 96, 112, 128, 192, 256, 512}) {
    const auto last_dim = [size](HandElement element) {
      return
          [size, element](const HandPlace& at) { return at.dim == size - 1 ? element(at) : 0.0; };
    };
    const LogicalProblem problem =
        hand_problem({.requests = {{1, 2}},
                      .head_size = size,
                      .head_size_v = size,
                      .query_dtype = widest(),
                      .kv_dtype = widest()},
                     last_dim(one), last_dim(listed({std::log(3.0), 0.0})), listed({4.0, 0.0}));
    expect_rows(answer(problem, {.dim_padding = 3, .fill = Fill::kNaN}), {3.0}, {std::log(4.0)});
  }
}

// H21: rows that verify drafts see no later drafts.
TEST_P(HandCase, H21DraftRowsSeeNoLaterDrafts) {
  expect_rows(answer(uniform_probe({{3, 7}})), {31.0 / 5, 21.0 / 2, 127.0 / 7}, {});
  expect_rows(answer(uniform_probe({{3, 7}, {1, 4}, {3, 9}})),
              {31.0 / 5, 21.0 / 2, 127.0 / 7, 15.0 / 4, 127.0 / 7, 255.0 / 8, 511.0 / 9}, {});
}

// H22: ALiBi slopes of head counts that are no powers of two.
TEST(AlibiSlopes, H22HeadCountsThatAreNoPowersOfTwo) {
  const auto expect_slopes = [](const std::vector<double>& exponents) {
    const std::vector<float> slopes = alibi_slopes(static_cast<std::int64_t>(exponents.size()));
    ASSERT_EQ(slopes.size(), exponents.size());
    for (std::size_t h = 0; h < slopes.size(); ++h) {
      EXPECT_FLOAT_EQ(slopes[h], static_cast<float>(std::exp2(exponents[h]))) << "head " << h;
    }
  };
  expect_slopes({-1, -2, -3, -4, -5, -6, -7, -8});
  expect_slopes({-1, -2, -3, -4, -5, -6, -7, -8, -0.5, -1.5, -2.5, -3.5});
  expect_slopes({-2, -4, -6, -8, -1, -3});
}

}  // namespace
}  // namespace attn::property_tests
