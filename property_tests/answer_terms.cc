// Terms of normalisation, of the log-sum-exp and of storing the answer.
#include <cmath>

#include "property_tests/bound_case.h"
#include "property_tests/hand_row.h"

namespace attn::property_tests {
namespace {

DrawnOperation one_key(double score, double value) {
  return operation_of(scored_row({score}, {value}));
}

void many_log_roundings(Arithmetic& a) {
  a.vector = NumberFormat::kF32;
  a.log_roundings = 8;
}

}  // namespace

std::vector<BoundCase> answer_terms() {
  std::vector<BoundCase> cases;
  const auto add = [&](BoundCase one) { cases.push_back(std::move(one)); };

  add({.term = "Normalisation",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF32;
             a.normalize_roundings = 8;
           },
       .problem =
           [](int) {
             return operation_of(scored_row({0, 0, 0}, {1, 1, 1}));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.normalize_roundings = 4; }},
       .least = 0.7,
       .options = all_up});
  add({.term = "ErrorOfTheSumInTheOutput",  // |o| Den
       .contract = [](Arithmetic& a) { a.sum.type = NumberFormat::kF16; },
       .problem =
           [](int) { return operation_of(one_above(0.0, 31, std::log(0x1p-11 * 0x1.04p+0))); },
       .dropped = {.bound = [](judge::RowBound& b) { b.out = 0.0; }},
       .least = 0.85});
  add({.term = "ErrorOfScoresInTheSum",  // pa
       .contract = [](Arithmetic& a) { a.key.type = NumberFormat::kBF16; },
       .problem = [](int) { return one_key(1.0 + kUnitBF16 * kUp, 1.0); },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowPa] = 0.0; }},
       .least = 0.9,
       .answer = BoundedAnswer::kLse});
  add({.term = "ErrorOfDistancesInTheSum",  // pd
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF32;
             a.exp_arg_roundings = 8;
             a.log_roundings = 1;
           },
       .problem = [](int) { return operation_of(one_above(0.0, 63, -1.0)); },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowPd] = 0.0; }},
       .least = 0.4,
       .answer = BoundedAnswer::kLse,
       .options = all_up});
  add({.term = "OutputRounding",
       .contract = [](Arithmetic& a) { a.out.type = NumberFormat::kBF16; },
       .problem = [](int) { return one_key(0.0, 1.0 + kUnitBF16 * kUp); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.out = {}; }},
       .least = 0.9});
  add({.term = "OutputQuantum",
       .contract = [](Arithmetic& a) { a.out.type = NumberFormat::kF8E4M3FN; },
       .problem = [](int) { return one_key(0.0, kQuantum8 * kUp); },
       .dropped = {.bound = [](judge::RowBound& b) { b.constant = 0.0; }},
       .least = 0.85});

  // ---- log-sum-exp
  add({.term = "LseRounding",
       .contract = [](Arithmetic& a) { a.lse.type = NumberFormat::kBF16; },
       .problem = [](int) { return one_key(1.0 + kUnitBF16 * kUp, 1.0); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.lse = {}; }},
       .least = 0.9,
       .answer = BoundedAnswer::kLse});
  add({.term = "LseQuantum",
       .contract = [](Arithmetic& a) { a.lse.type = NumberFormat::kF8E4M3FN; },
       .problem = [](int) { return one_key(kQuantum8 * kUp, 1.0); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.lse.scale = 0x1p+60; }},
       .least = 0.85,
       .answer = BoundedAnswer::kLse});
  add({.term = "Logarithm",
       .contract = [](Arithmetic& a) { a.log_abs = 0x1p-10; },
       .problem =
           [](int) {
             return operation_of(scored_row({0.0, 0.0}, {1.0, 1.0}));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.log_abs = 0x1p-11; }},
       .least = 0.9,
       .answer = BoundedAnswer::kLse,
       .options = all_up});
  add({.term = "RoundingsOfALargeLse",
       .contract = many_log_roundings,
       .problem = [](int) { return one_key(-1000.0, 1.0); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.log_roundings = 4; }},
       .least = 0.8,
       .answer = BoundedAnswer::kLse,
       .options = all_up});
  add({.term = "RoundingsOfTheLogarithm",
       .contract = many_log_roundings,
       .problem =
           [](int) {
             return operation_of(
                 scored_row(std::vector<double>(64, 0.0), std::vector<double>(64, 1.0)));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.log_roundings = 4; }},
       .least = 0.8,
       .answer = BoundedAnswer::kLse,
       .options = all_up});
  add({.term = "LogarithmFarAboveTheKeys",  // the keys' maximum was the shift
       .contract = many_log_roundings,
       .problem =
           [](int) {
             HandRow row = scored_row({-40.0}, {1.0});
             row.sink = 0.0;
             return operation_of(row);
           },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowKeysMax] = s[kRowMax]; }},
       .least = 0.8,
       .answer = BoundedAnswer::kLse,
       .options =
           [](ModelOptions& o, int i) {
             all_up(o, i);
             o.sink = SinkPlace::kEndKeys;
           }});
  add({.term = "LogarithmOfALaggingMaximum",
       .contract =
           [](Arithmetic& a) {
             many_log_roundings(a);
             a.max_lag = 8.0;
             a.tile = 4;
           },
       .problem =
           [](int) {
             HandRow row = scored_row({-8.0, 0.0}, {1.0, 1.0});
             row.positions = {0, 4};
             return operation_of(row);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.max_lag = 0.0; }},
       .least = 0.7,
       .answer = BoundedAnswer::kLse,
       .options =
           [](ModelOptions& o, int i) {
             all_up(o, i);
             o.lag = 8.0;
           }});
  add({.term = "ScoresWithoutTheSink",  // pa / mass
       .contract = [](Arithmetic& a) { a.key.type = NumberFormat::kBF16; },
       .problem =
           [](int) {
             HandRow row = scored_row({1.0 + kUnitBF16 * kUp}, {1.0});
             row.sink = 5.0;
             row.lse_includes_sink = false;
             return operation_of(row);
           },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowMass] = 1.0; }},
       .least = 0.9,
       .answer = BoundedAnswer::kLse});
  add({.term = "DistancesWithoutTheSink",  // pd / mass
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF32;
             a.exp_arg_roundings = 64;
             a.log_roundings = 1;
           },
       .problem =
           [](int) {
             HandRow row = one_above(0.0, 15, -1.0);
             row.sink = 5.0;
             row.lse_includes_sink = false;
             return operation_of(row);
           },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowPd] *= s[kRowMass]; }},
       .least = 0.1,
       .answer = BoundedAnswer::kLse,
       .options = all_up});
  add({.term = "FlushedWeightsWithoutTheSink",  // l mass
       .contract = [](Arithmetic& a) { a.exp_abs = 0x1p-10; },
       .problem =
           [](int) {
             HandRow row = one_above(0.0, 16, std::log(0x1p-10 * kDown));
             row.sink = 1.0;
             row.lse_includes_sink = false;
             return operation_of(row);
           },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowMass] = 1.0; }},
       .least = 0.3,
       .answer = BoundedAnswer::kLse,
       .options = [](ModelOptions& o, int) { o.flush_exp = true; }});
  add({.term = "UnderflowWithoutTheSink",  // W / mass: the sink was the shift of the keys' sum
       .contract =
           [](Arithmetic& a) {
             a.sum.type = NumberFormat::kF16;
             a.sum.lanes = 64;
             a.flush = true;
           },
       .problem =
           [](int) {
             HandRow row = one_above(0.0, 63, std::log(0x1p-14 * kDown) + 4.0);
             row.sink = 4.0;
             row.lse_includes_sink = false;
             return operation_of(row);
           },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowMass] = 1.0; }},
       .least = 0.3,
       .answer = BoundedAnswer::kLse,
       // The model's shift is the keys' maximum 0; its row sum is e^-4 times the keys', and 1.
       .hooks = {.weight = [](std::int64_t, double w) { return w * std::exp(-4.0); },
                 .lse = [](double max, double sum) { return max + 4.0 + std::log(sum - 1.0); }}});
  return cases;
}

}  // namespace attn::property_tests
