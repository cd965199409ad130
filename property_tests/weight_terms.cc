// Terms of the rounding of weights, of values, and of the sink's weight.
#include <cmath>

#include "property_tests/bound_case.h"

namespace attn::property_tests {
namespace {

// A key of weight 1 and value 0, and `count` of the given weight and value.
HandRow needle(std::size_t count, double weight, double value) {
  std::vector<double> scores(count + 1, std::log(weight));
  std::vector<double> values(count + 1, value);
  scores[0] = values[0] = 0.0;
  return scored_row(scores, values);
}

}  // namespace

std::vector<BoundCase> weight_terms() {
  std::vector<BoundCase> cases;
  const auto add = [&](BoundCase one) { cases.push_back(std::move(one)); };

  add({.term = "WeightRounding",
       .contract = [](Arithmetic& a) { a.p.type = NumberFormat::kBF16; },
       .problem =
           [](int) {
             const double up = std::log(0.5 * (1.0 + kUnitBF16 * kUp));
             const double down = std::log(0.5 * (1.0 + kUnitBF16 * kDown));
             return operation_of(scored_row({0.0, up, down}, {0.0, 1.0, -1.0}));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.p.type = NumberFormat::kF16; }},
       .least = 0.9});
  add({.term = "WeightQuantum",  // a needle and many tiny weights
       .contract = [](Arithmetic& a) { a.p.type = NumberFormat::kF8E4M3FN; },
       .problem = [](int) { return operation_of(needle(100, kQuantum8 * kUp, 1.0)); },
       .dropped = {.bound = [](judge::RowBound& b) { b.v = 0.0; }},
       .least = 0.85});
  add({.term = "WeightRoundings",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF32;
             a.p_roundings = 4;
           },
       .problem = [](int) { return operation_of(scored_row({0.0}, {1.0})); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.p_roundings = 2; }},
       .least = 0.9,
       .options = all_up});
  add({.term = "QuantumOfANormalisedWeight",  // it is not divided by the row sum
       .contract =
           [](Arithmetic& a) {
             a.p = {NumberFormat::kF8E4M3FN, RoundingMode::kNearest, 0x1p-4, false};
             a.p_normalized = true;
           },
       .problem =
           [](int) {
             return operation_of(
                 scored_row(std::vector<double>(64, 0.0), std::vector<double>(64, 1.0)));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.p_normalized = false; }},
       .least = 0.85});
  add({.term = "UnderflowOfANormalisedWeight",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF16;
             a.normalize_roundings = 1;
             a.p_normalized = true;
             a.flush = true;
           },
       .problem =
           [](int) {
             std::vector<double> scores(65, 0.0), values(65, 0.0);
             scores[64] = std::log(0x1p-8 * kDown);
             values[64] = 0x1p+14;
             return operation_of(scored_row(scores, values));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.p_normalized = false; }},
       .least = 0.9});
  add({.term = "NormalisationOfEveryWeight",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF32;
             a.normalize_roundings = 8;
             a.p_normalized = true;
           },
       .problem =
           [](int) {
             return operation_of(scored_row({0, 0, 0}, {1, -1, 0}));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.p_normalized = false; }},
       .least = 0.5,
       .options =
           [](ModelOptions& o, int i) {
             o.seed = static_cast<std::uint64_t>(i);
             o.scalar_error = Injection::kRandom;
           },
       .problems = 64});
  add({.term = "RoundedWeightsInTheSum",
       .contract =
           [](Arithmetic& a) {
             a.p.type = NumberFormat::kBF16;
             a.sum_rounded_p = true;
           },
       .problem = [](int) { return operation_of(needle(31, 0.5 * (1.0 + kUnitBF16 * kUp), 1.0)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.sum_rounded_p = false; }},
       .least = 0.85,
       .answer = BoundedAnswer::kLse});
  add({.term = "QuantumOfRoundedWeightsInTheSum",
       .contract =
           [](Arithmetic& a) {
             a.p.type = NumberFormat::kF8E4M3FN;
             a.sum_rounded_p = true;
           },
       .problem = [](int) { return operation_of(needle(200, kQuantum8 * kUp, 1.0)); },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowVisible] = 1.0; }},
       .least = 0.5,
       .answer = BoundedAnswer::kLse});

  // ---- values
  add({.term = "ValueRounding",
       .contract = [](Arithmetic& a) { a.value.type = NumberFormat::kBF16; },
       .problem = [](int) { return operation_of(scored_row({0.0}, {1.0 + kUnitBF16 * kUp})); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.value = {}; }},
       .least = 0.9});
  add({.term = "ValueQuantum",
       .contract = [](Arithmetic& a) { a.value.type = NumberFormat::kF8E4M3FN; },
       .problem = [](int) { return operation_of(scored_row({0.0}, {kQuantum8 * kUp})); },
       .dropped = {.bound = [](judge::RowBound& b) { b.constant = 0.0; }},
       .least = 0.85});
  add({.term = "FlushedValue",
       .contract =
           [](Arithmetic& a) {
             a.value = {NumberFormat::kBF16, RoundingMode::kNearest, 1.0, true};
           },
       .problem = [](int) { return operation_of(scored_row({0.0}, {0x1p-126 - 0x1p-132})); },
       .dropped = {.bound = [](judge::RowBound& b) { b.constant = 0.0; }},
       .least = 0.9});
  add({.term = "ScaleThatJoinsARoundedValueLater",
       .contract = [](Arithmetic& a) { a.value.type = NumberFormat::kF8E4M3FN; },
       .problem =
           [](int) {
             HandRow row = scored_row({0.0}, {kQuantum8 * kUp * 0x1p+6});
             row.value_scale = 0x1p+6;
             return operation_of(row);
           },
       .dropped = {.terms = [](judge::SoftmaxTerms& t) { t.value_scale = 1.0; }},
       .least = 0.8,
       .hooks = {.change_row = [](ModelRow& row) {
         static constexpr double kTwice = 2.0 * kQuantum8 * 0x1p+6;
         row.values = {&kTwice};
       }}});

  // ---- the sink
  const auto eight_argument_roundings = [](Arithmetic& a) {
    a.vector = NumberFormat::kF32;
    a.exp_arg_roundings = 8;
  };
  add({.term = "SinkFarAboveTheKeysMaximum",  // added last, relative to the keys' maximum
       .contract = eight_argument_roundings,
       .problem =
           [](int) {
             HandRow row = scored_row({0.0}, {1.0});
             row.sink = 40.0;
             return operation_of(row);
           },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowSinkDistance] = 0.0; }},
       .least = 0.8,
       .answer = BoundedAnswer::kLse,
       .options =
           [](ModelOptions& o, int i) {
             all_up(o, i);
             o.sink = SinkPlace::kEndKeys;
           },
       .hooks = {.lse = [](double max, double sum) { return max - 40.0 + std::log(sum); }}});
  add({.term = "SinkBelowTheKeys",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF32;
             a.exp_arg_roundings = 64;
           },
       .problem =
           [](int) {
             HandRow row = scored_row({0.0}, {1.0});
             row.sink = -1.0;
             return operation_of(row);
           },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowSinkDistance] = 0.0; }},
       .least = 0.6,
       .options = all_up});
  add({.term = "SinkAsTheMaximum",  // the keys are far below it, and from one another
       .contract = eight_argument_roundings,
       .problem =
           [](int) {
             HandRow row = scored_row({0.0, 20.0}, {std::exp(20.0), -1.0});
             row.sink = 40.0;
             return operation_of(row);
           },
       .dropped = {.bound = [](judge::RowBound& b) { b.puv = 0.0; }},
       .least = 0.25,
       .options =
           [](ModelOptions& o, int i) {
             all_up(o, i);
             o.sink = SinkPlace::kStart;
           }});
  add({.term = "ExponentialOfTheSink",  // keys are rescaled once more when it is the maximum
       .contract = [](Arithmetic& a) { a.exp_rel = 0x1p-12; },
       .problem =
           [](int) {
             HandRow row = scored_row(std::vector<double>(32, -0x1p-6), std::vector<double>(32, 1));
             row.keys[0][0] = 0.0;
             row.sink = 0x1p-6;
             return operation_of(row);
           },
       .dropped = {.terms = [](judge::SoftmaxTerms& t) { t.sink = false; }},
       .least = 0.9,
       .answer = BoundedAnswer::kLse,
       .options = all_up});
  add({.term = "RoundingsOfTheSink",
       .contract = [](Arithmetic& a) { a.vector = NumberFormat::kBF16; },
       .problem =
           [](int i) {
             HandRow row = scored_row(std::vector<double>(128, 0.0), std::vector<double>(128, 1.0));
             row.sink = 0x1p-14 * i;
             return operation_of(row);
           },
       .dropped = {.terms = [](judge::SoftmaxTerms& t) { t.sink = false; }},
       .least = 0.7,
       .answer = BoundedAnswer::kLse,
       .hooks = {.lse = exact_lse},
       .problems = 64});
  return cases;
}

}  // namespace attn::property_tests
