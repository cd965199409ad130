// Terms of the sums over keys: their depths and what underflows in them.
#include <cmath>
#include <memory>

#include "property_tests/bound_case.h"

namespace attn::property_tests {
namespace {

// As kUp, of weights that are exponentials of logarithms.
constexpr double kAbove = 1.0 + 0x1p-6;

// A key of weight 1 and `count` of `weight`, of the same value 1. In a float16 sum each of these
// is rounded up, of a weight a little above half of its last place.
HandRow chain_of_weights(std::size_t count, double weight) {
  std::vector<double> scores(count + 1, std::log(weight));
  scores[0] = 0.0;
  return scored_row(scores, std::vector<double>(count + 1, 1.0));
}

std::vector<std::int64_t> every(std::int64_t stride, std::size_t count) {
  std::vector<std::int64_t> positions;
  for (std::size_t i = 0; i < count; ++i) {
    positions.push_back(static_cast<std::int64_t>(i) * stride);
  }
  return positions;
}

HandRow spread_out(std::int64_t stride) {
  HandRow row = chain_of_weights(31, kUnitF16 * kAbove);
  row.positions = every(stride, 32);
  return row;
}

// Values, and the output again, divided and multiplied by a power of two.
std::function<void(ModelRow&)> with_scaled_values(double factor) {
  return [factor, held = std::make_shared<std::vector<std::vector<double>>>()](ModelRow& row) {
    held->clear();
    for (const double* value : row.values) {
      held->emplace_back(value, value + row.head_size_v);
      for (double& x : held->back()) x *= factor;
    }
    for (std::size_t i = 0; i < row.values.size(); ++i) row.values[i] = (*held)[i].data();
  };
}

// A needle without a value, and `count` keys of weight 2^-10 and the given value.
HandRow light_keys(std::size_t count, double value) {
  HandRow row = chain_of_weights(count, 0x1p-10);
  for (std::vector<double>& v : row.values) v = {value};
  row.values[0] = {0.0};
  return row;
}

void narrow_flushed_pv(Arithmetic& a) {
  a.pv.type = NumberFormat::kF16;
  a.flush = true;
}

}  // namespace

std::vector<BoundCase> sum_terms() {
  std::vector<BoundCase> cases;
  const auto add = [&](BoundCase one) { cases.push_back(std::move(one)); };

  add({.term = "HalfOfTheDepthOfTheSum",
       .contract = [](Arithmetic& a) { a.sum.type = NumberFormat::kF16; },
       .problem = [](int) { return operation_of(chain_of_weights(31, kUnitF16 * kAbove)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.sum.lanes = 2; }},
       .least = 0.85,
       .answer = BoundedAnswer::kLse});
  add({.term = "HalfOfTheDepthOfPV",
       .contract = [](Arithmetic& a) { a.pv.type = NumberFormat::kF16; },
       .problem = [](int) { return operation_of(chain_of_weights(31, kUnitF16 * kAbove)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.pv.lanes = 2; }},
       .least = 0.85});
  add({.term = "SpanOfTheSum",  // visible keys one a block
       .contract =
           [](Arithmetic& a) {
             a.sum.type = NumberFormat::kF16;
             a.sum.block = 4;
           },
       .problem = [](int) { return operation_of(spread_out(4)); },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowSpan] = s[kRowVisible]; }},
       .least = 0.75,
       .answer = BoundedAnswer::kLse});
  add({.term = "SpanOfPV",
       .contract =
           [](Arithmetic& a) {
             a.pv.type = NumberFormat::kF16;
             a.pv.block = 4;
           },
       .problem = [](int) { return operation_of(spread_out(4)); },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowSpan] = s[kRowVisible]; }},
       .least = 0.75});
  add({.term = "SpanOfTiles",  // visible keys one a tile
       .contract =
           [](Arithmetic& a) {
             a.exp_rel = 0x1p-12;
             a.tile = 16;
           },
       .problem =
           [](int) {
             HandRow row;
             for (int k = 0; k < 32; ++k) {
               row.keys.push_back({0x1p-6 * k});
               row.values.push_back({k < 8 ? 1.0 : 0.0});
               row.positions.push_back(16 * k);
             }
             row.values[31] = {-8.0 * std::exp(-0x1p-6 * 27)};
             return operation_of(row);
           },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowSpan] = s[kRowVisible]; }},
       .least = 0.35,
       .options = [](ModelOptions& o, int) { o.rescale_error = Injection::kUp; }});
  add({.term = "JoinsOfBlocksInPV",
       .contract =
           [](Arithmetic& a) {
             a.pv.type = NumberFormat::kF16;
             a.pv.block = 2;
           },
       .problem = [](int) { return operation_of(spread_out(2)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.pv.block = 1 << 20; },
                   .sums = [](judge::RowSums& s) { s[kRowVisible] = 2.0; }},
       .least = 0.8});
  add({.term = "JoinsOfLanesInPV",
       .contract =
           [](Arithmetic& a) {
             a.pv.type = NumberFormat::kF16;
             a.pv.lanes = 8;
           },
       .problem =
           [](int) {
             HandRow row = scored_row(std::vector<double>(8, 0.0),
                                      {1.0 + kUnitF16 * kAbove, kUnitF16 * kAbove,
                                       kUnitF16 * kAbove, 0, kUnitF16 * kAbove, 0, 0, 0});
             return operation_of(row);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.pv.lanes = 1; },
                   .sums = [](judge::RowSums& s) { s[kRowVisible] = s[kRowSpan] = 1.0; }},
       .least = 0.9});
  add({.term = "AddendsOfAMatrixStepInPV",
       .contract =
           [](Arithmetic& a) {
             a.pv.type = NumberFormat::kF16;
             a.pv.mode = RoundingMode::kTruncate;
             a.pv.mma_k = 4;
           },
       .problem =
           [](int) {
             const double lost = 2.0 * kUnitF16 * kDown;
             std::vector<double> values(8, lost);
             values[0] += 1.0;
             return operation_of(scored_row(std::vector<double>(8, 0.0), values));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.pv.mma_k = 0; },
                   .sums = [](judge::RowSums& s) { s[kRowVisible] = s[kRowSpan] = 3.0; }},
       .least = 0.4});
  add({.term = "CoarseAccumulatorOfPV",
       .contract =
           [](Arithmetic& a) {
             a.pv.type = NumberFormat::kF32;
             a.pv.block = 8;
             a.pv.inner = kUnitF16;
           },
       .problem = [](int) { return operation_of(chain_of_weights(7, kUnitF16 * kAbove)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.pv.inner.reset(); }},
       .least = 0.85});

  // ---- underflow
  add({.term = "UnderflowInPV",
       .contract = narrow_flushed_pv,
       .problem = [](int) { return operation_of(light_keys(64, 0x1p-4 * kDown)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.flush = false; }},
       .least = 0.4});
  add({.term = "UnderflowInPVBeforeAScale",
       .contract = narrow_flushed_pv,
       .problem =
           [](int) {
             HandRow row = light_keys(16, 0x1p+2 * kDown);
             row.value_scale = 0x1p+6;
             return operation_of(row);
           },
       .dropped = {.terms = [](judge::SoftmaxTerms& t) { t.value_scale = 1.0; }},
       .least = 0.25,
       .hooks = {.change_row = with_scaled_values(0x1p-6),
                 .out = [](double x) { return x * 0x1p+6; }}});
  add({.term = "UnderflowInPVBeforeAScaleInTheCache",
       .contract = narrow_flushed_pv,
       .problem =
           [](int) {
             HandRow row = chain_of_weights(16, 0x1p-5 * kDown);
             row.token_scale = 0x1p+6;
             for (std::size_t i = 0; i < 17; ++i) {
               row.values[i] = {i == 0 ? 0.0 : 0x1p-3};
             }
             // Scores through the query: keys are codes.
             row.query = {std::log(0x1p-5 * kDown) / 64.0};
             for (std::size_t i = 0; i < 17; ++i) row.keys[i] = {i == 0 ? 0.0 : 64.0};
             return operation_of(row);
           },
       .dropped = {.terms = [](judge::SoftmaxTerms& t) { t.value_scale_in_cache = false; }},
       .least = 0.15,
       .hooks = {.change_row = with_scaled_values(0x1p-6),
                 .out = [](double x) { return x * 0x1p+6; }}});
  add({.term = "UnderflowInPVOfScaledWeights",
       .contract =
           [](Arithmetic& a) {
             narrow_flushed_pv(a);
             a.p.scale = 0x1p-6;
           },
       .problem = [](int) { return operation_of(light_keys(16, 0x1p+2 * kDown)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.p.scale = 1.0; }},
       .least = 0.25,
       .hooks = {.change_row = with_scaled_values(0x1p-6),
                 .out = [](double x) { return x * 0x1p+6; }}});
  add({.term = "UnderflowInTheSum",
       .contract =
           [](Arithmetic& a) {
             a.sum.type = NumberFormat::kF16;
             a.sum.lanes = 256;
             a.flush = true;
           },
       .problem = [](int) { return operation_of(chain_of_weights(255, kNormal16 * kDown)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.flush = false; }},
       .least = 0.35,
       .answer = BoundedAnswer::kLse});
  return cases;
}

}  // namespace attn::property_tests
