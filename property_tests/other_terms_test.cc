// Terms of the error bounds of differential attention and of the indexer: each in a problem that
// needs it. See bound_case.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "property_tests/hand_row.h"
#include "property_tests/other_case.h"

namespace attn::property_tests {
namespace {

std::int64_t size_of(const std::vector<double>& values) {
  return static_cast<std::int64_t>(values.size());
}

// ---- differential attention

struct HandDifference {
  std::vector<double> first, second;  // what the two softmaxes give, of even size
  double lambda = 0.0, lambda_init = 0.0, eps = 0.0;
  bool norm = false;
};

// Of two keys the first softmax sees the one, the second the other; the rest is e^-700.
DrawnOperation operation_of(const HandDifference& hand) {
  DrawnOperation drawn;
  const auto keep = [&](DType type, std::vector<std::int64_t> shape,
                        const std::vector<double>& values) {
    return drawn.memory.keep(HostTensor(type, std::move(shape), values));
  };
  const std::int64_t width = size_of(hand.first);
  std::vector<double> values = hand.first;
  values.insert(values.end(), hand.second.begin(), hand.second.end());
  DifferentialOp op;
  AttentionOp& inner = op.attention;
  inner.query = keep(DType::kF64, {1, 2, 1}, {1.0, 1.0});
  inner.query_start_loc = keep(DType::kI32, {2}, {0.0, 1.0});
  inner.seq_lens = keep(DType::kI32, {1}, {2.0});
  inner.kv.kv_start_loc = keep(DType::kI32, {2}, {0.0, 2.0});
  inner.kv.key = keep(DType::kF64, {2, 2, 1}, {0.0, -700.0, -700.0, 0.0});
  inner.kv.value = keep(DType::kF64, {2, 2, width / 2}, values);
  op.lambda = hand.lambda;
  op.lambda_init = hand.lambda_init;
  op.eps = hand.eps;
  if (hand.norm) {
    op.norm_weight =
        keep(DType::kF64, {width}, std::vector<double>(static_cast<std::size_t>(width), 1.0));
  }
  drawn.operation = op;
  return drawn;
}

// Sums of one of the two softmaxes set to 0.
std::function<void(Tensors&)> without_side(std::int64_t side) {
  return [side](Tensors& tensors) {
    for (const char* name : {"cond_pv", "cond_pav", "cond_puv", "cond_v"}) {
      HostTensor& sums = tensors.find(name)->second;
      const std::int64_t half = sums.num_units() / 2;
      for (std::int64_t i = 0; i < half; ++i) sums.set_code(side * half + i, 0);
    }
  };
}

void rounded_values(Arithmetic& a) { a.value.type = NumberFormat::kBF16; }
void float32(Arithmetic& a) { a.vector = NumberFormat::kF32; }
void exact(Arithmetic& a) { a.vector = NumberFormat::kExact; }

// One element rounded down and the others up, so that the root mean square moves away from it.
HandDifference one_against_all(bool norm) {
  HandDifference hand;
  hand.first.assign(16, 1.0 + kUnitBF16 * kUp);
  hand.first[0] = 1.0 + kUnitBF16 * kDown;
  hand.second.assign(16, 0.0);
  hand.norm = norm;
  return hand;
}

std::vector<OtherCase> differential_terms() {
  std::vector<OtherCase> cases;
  const auto add = [&](OtherCase one) { cases.push_back(std::move(one)); };
  add({.term = "FirstSoftmax",
       .contract = rounded_values,
       .problem =
           [](int) {
             return operation_of(HandDifference{{1.0 + kUnitBF16 * kUp, 1.0}, {0.0, 0.0}, 0.5});
           },
       .dropped_sums = without_side(0),
       .least = 0.95});
  add({.term = "SecondSoftmax",
       .contract = rounded_values,
       .problem =
           [](int) {
             return operation_of(HandDifference{{0.0, 0.0}, {1.0 + kUnitBF16 * kUp, 1.0}, 0.5});
           },
       .dropped_sums = without_side(1),
       .least = 0.95});
  // lambda, y1, their product, the factor and its product with y are all rounded up.
  add({.term = "RoundingsOfTheDifference",
       .contract = float32,
       .problem =
           [](int i) {
             const double up = 1.0 + 2049 * 0x1p-23 - kUnitF32 * kDown;
             return operation_of(
                 HandDifference{{0.0, 0.0}, {up, up}, up, -kUnitF32 * kUp - 0x1p-23 * (977 * i)});
           },
       .dropped_arithmetic = exact,
       .least = 0.7,
       .problems = 64});
  add({.term = "RootMeanSquare",
       .contract = rounded_values,
       .problem = [](int) { return operation_of(one_against_all(true)); },
       // Each element's own error, divided by the root.
       .dropped =
           [](std::vector<double>& bounds) {
             std::fill(bounds.begin(), bounds.end(), kUnitBF16 * (1.0 + kUnitBF16));
           },
       .least = 0.9});
  // A chain of squares that are each rounded up.
  const auto chain_of_squares = [](int) {
    HandDifference hand;
    hand.first.assign(64, 0x1p-12 * (1.0 + 0x1p-9));
    hand.first[0] = 1.0;
    hand.second.assign(64, 0.0);
    hand.norm = true;
    return operation_of(hand);
  };
  add({.term = "RoundingsOfTheNorm",
       .contract = float32,
       .problem = chain_of_squares,
       .dropped =
           [](std::vector<double>& bounds) {
             for (std::size_t j = 0; j < bounds.size(); ++j) {
               const double z = (j == 0 ? 1.0 : 0x1p-12 * (1.0 + 0x1p-9)) * 8.0;
               bounds[j] -= (64 + 8) * kUnitF32 * z * (1.0 - 0x1p-12);
             }
           },
       .least = 0.35});
  add({.term = "UnderflowOfSquares",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF32;
             a.flush = true;
           },
       .problem =
           [](int) {
             HandDifference hand;
             hand.first.assign(2, 0x1p-64);
             hand.second.assign(2, 0.0);
             hand.eps = 0x1p-120;
             hand.norm = true;
             return operation_of(hand);
           },
       .dropped_arithmetic = [](Arithmetic& a) { a.flush = false; },
       .least = 0.005});
  add({.term = "OutputRounding",
       .contract = [](Arithmetic& a) { a.out.type = NumberFormat::kBF16; },
       .problem =
           [](int) {
             return operation_of(HandDifference{{1.0 + kUnitBF16 * kUp, 1.0}, {0.0, 0.0}});
           },
       .dropped_arithmetic = [](Arithmetic& a) { a.out = {}; },
       .least = 0.95});
  add({.term = "OutputQuantum",
       .contract = [](Arithmetic& a) { a.out.type = NumberFormat::kF8E4M3FN; },
       .problem =
           [](int) {
             return operation_of(HandDifference{{kQuantum8 * kUp, 1.0}, {0.0, 0.0}});
           },
       .dropped_arithmetic = [](Arithmetic& a) { a.out.scale = 0x1p+60; },
       .least = 0.9});
  return cases;
}

// ---- indexer

struct HandIndexer {
  std::vector<std::vector<double>> heads;  // queries of the only token
  std::vector<double> key;                 // the only one
  std::vector<double> weights;             // of the heads
  double key_scale = 1.0;                  // multiplies what is stored: key / key_scale
};

DrawnOperation operation_of(const HandIndexer& hand) {
  DrawnOperation drawn;
  const auto keep = [&](DType type, std::vector<std::int64_t> shape,
                        const std::vector<double>& values) {
    return drawn.memory.keep(HostTensor(type, std::move(shape), values));
  };
  std::vector<double> queries;
  for (const std::vector<double>& head : hand.heads) {
    queries.insert(queries.end(), head.begin(), head.end());
  }
  std::vector<double> stored = hand.key;
  for (double& x : stored) x /= hand.key_scale;
  const auto heads = static_cast<std::int64_t>(hand.heads.size());
  IndexerOp op;
  op.query = keep(DType::kF64, {1, heads, size_of(hand.key)}, queries);
  op.key = keep(DType::kF64, {1, size_of(hand.key)}, stored);
  op.weights = keep(DType::kF64, {1, heads}, hand.weights);
  if (hand.key_scale != 1.0) op.k_scale = keep(DType::kF32, {1}, {hand.key_scale});
  op.k_start = keep(DType::kI32, {1}, {0.0});
  op.k_end = keep(DType::kI32, {1}, {1.0});
  drawn.operation = op;
  return drawn;
}

DrawnOperation one_head(const std::vector<double>& query, const std::vector<double>& key) {
  return operation_of(HandIndexer{{query}, key, {1.0}});
}

std::function<void(std::vector<double>&)> less(double term) {
  return [term](std::vector<double>& bounds) { bounds[0] -= term; };
}

std::vector<OtherCase> indexer_terms() {
  std::vector<OtherCase> cases;
  const auto add = [&](OtherCase one) { cases.push_back(std::move(one)); };
  add({.term = "HalfOfTheDepthOfTheDot",
       .contract = [](Arithmetic& a) { a.dot.type = NumberFormat::kF32; },
       .problem = [](int) { return one_head(all(64, 1.0), chain(64, kUnitF32 * kUp)); },
       .dropped_arithmetic = [](Arithmetic& a) { a.dot.lanes = 2; },
       .least = 0.95});
  add({.term = "SumOverHeads",
       .contract = float32,
       .problem =
           [=](int) {
             HandIndexer hand;
             hand.heads.assign(16, {kUnitF32 * kUp});
             hand.heads[0] = {1.0};
             hand.key = {1.0};
             hand.weights = all(16, 1.0);
             return operation_of(hand);
           },
       .dropped = less(16 * kUnitF32),
       .least = 0.75});
  add({.term = "QueryRounding",
       .contract = [](Arithmetic& a) { a.query.type = NumberFormat::kBF16; },
       .problem = [](int) { return one_head({1.0 + kUnitBF16 * kUp}, {1.0}); },
       .dropped_arithmetic = [](Arithmetic& a) { a.query = {}; },
       .least = 0.95});
  add({.term = "KeyRounding",
       .contract = [](Arithmetic& a) { a.key.type = NumberFormat::kBF16; },
       .problem = [](int) { return one_head({1.0}, {1.0 + kUnitBF16 * kUp}); },
       .dropped_arithmetic = [](Arithmetic& a) { a.key = {}; },
       .least = 0.95});
  add({.term = "QueryQuantum",
       .contract = [](Arithmetic& a) { a.query.type = NumberFormat::kF8E4M3FN; },
       .problem = [](int) { return one_head({kQuantum8 * kUp}, {8.0}); },
       .dropped = less(8.0 * kQuantum8),
       .least = 0.85});
  add({.term = "KeyQuantum",
       .contract = [](Arithmetic& a) { a.key.type = NumberFormat::kF8E4M3FN; },
       .problem = [](int) { return one_head({8.0}, {kQuantum8 * kUp}); },
       .dropped = less(8.0 * kQuantum8),
       .least = 0.85});
  add({.term = "ProductOfQuanta",
       .contract =
           [](Arithmetic& a) {
             a.query.type = NumberFormat::kF8E4M3FN;
             a.key.type = NumberFormat::kF8E4M3FN;
           },
       .problem = [](int) { return one_head(all(4, kQuantum8 * kUp), all(4, kQuantum8 * kUp)); },
       .dropped = less(4.0 * kQuantum8 * kQuantum8),
       .least = 0.8});
  const auto flushed = [](Arithmetic& a) {
    a.dot.type = NumberFormat::kF16;
    a.flush = true;
  };
  add({.term = "UnderflowOfProducts",
       .contract = flushed,
       .problem = [](int) { return one_head(all(16, 1.0), all(16, kNormal16 * kDown)); },
       .dropped_arithmetic = [](Arithmetic& a) { a.dot.type = NumberFormat::kF32; },
       .least = 0.1});
  // The scale of the key multiplies the score.
  add({.term = "UnderflowBeforeTheScale",
       .contract = flushed,
       .problem =
           [=](int) {
             return operation_of(HandIndexer{{all(16, 1.0)}, all(16, 0x1p-8 * kDown), {1.0}, 64.0});
           },
       .dropped = less((2 * 16 + 4) * kNormal16 * 64.0),
       .least = 0.3,
       .read_as =
           [=](int) {
             return operation_of(HandIndexer{{all(16, 1.0)}, all(16, kNormal16 * kDown), {64.0}});
           }});
  add({.term = "OutputRounding",
       .contract = [](Arithmetic& a) { a.out.type = NumberFormat::kBF16; },
       .problem = [](int) { return one_head({1.0}, {1.0 + kUnitBF16 * kUp}); },
       .dropped_arithmetic = [](Arithmetic& a) { a.out = {}; },
       .least = 0.95});
  add({.term = "OutputQuantum",
       .contract = [](Arithmetic& a) { a.out.type = NumberFormat::kF8E4M3FN; },
       .problem = [](int) { return one_head({1.0}, {kQuantum8 * kUp}); },
       .dropped_arithmetic = [](Arithmetic& a) { a.out.scale = 0x1p+60; },
       .least = 0.9});
  return cases;
}

class OtherBoundTerm : public testing::TestWithParam<OtherCase> {};

TEST_P(OtherBoundTerm, IsNeeded) {
  const BoundRatios ratios = ratios_of(GetParam());
  EXPECT_LE(ratios.full, 1.0);
  EXPECT_GT(ratios.full, GetParam().least);
  EXPECT_GT(ratios.without_term, 1.0);
}

std::string name_of_other(const testing::TestParamInfo<OtherCase>& info) { return info.param.term; }

INSTANTIATE_TEST_SUITE_P(Differential, OtherBoundTerm, testing::ValuesIn(differential_terms()),
                         name_of_other);
INSTANTIATE_TEST_SUITE_P(Indexer, OtherBoundTerm, testing::ValuesIn(indexer_terms()),
                         name_of_other);

}  // namespace
}  // namespace attn::property_tests
