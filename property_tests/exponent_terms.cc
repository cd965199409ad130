// Terms of the error of an exponent: alpha, beta and kappa, and the exponential itself.
#include <cmath>

#include "property_tests/bound_case.h"
#include "property_tests/hand_row.h"

namespace attn::property_tests {
namespace {

// `first` keys of score 0, then 8 tiles, in each of which one key is `step` above the one before,
// then `last` keys in a tile of their own. Values 1, 0 and what makes the output about 0.
HandRow growing_tiles(std::int64_t tile, std::size_t last, double step) {
  std::vector<double> scores, values;
  std::vector<std::int64_t> positions;
  for (std::int64_t k = 0; k < tile; ++k) {
    scores.push_back(0.0);
    values.push_back(1.0);
    positions.push_back(k);
  }
  for (int t = 1; t < 8; ++t) {
    scores.push_back(t * step);
    values.push_back(0.0);
    positions.push_back(t * tile);
  }
  for (std::size_t k = 0; k < last; ++k) {
    scores.push_back(8 * step);
    values.push_back(-std::exp(-8 * step) * static_cast<double>(tile) / static_cast<double>(last));
    positions.push_back(8 * tile + static_cast<std::int64_t>(k));
  }
  HandRow row = scored_row(scores, values);
  row.positions = positions;
  return row;
}

// As above, one key a tile; steps such that a sum of keys, of 8 bits, is rounded back to what it
// was before it was rescaled.
HandRow rounded_back(std::int64_t tile, double share) {
  HandRow row = growing_tiles(tile, 1, 0.0);
  double score = 0.0;
  for (std::size_t i = static_cast<std::size_t>(tile); i < row.keys.size(); ++i) {
    const double sum = static_cast<double>(i);
    score -= std::log1p(-share / sum);
    row.keys[i][0] = score;
  }
  return row;
}

}  // namespace

std::vector<BoundCase> exponent_terms() {
  std::vector<BoundCase> cases;
  const auto add = [&](BoundCase one) { cases.push_back(std::move(one)); };

  // ---- the argument
  add({.term = "RoundingsOfTheArgument",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF32;
             a.exp_arg_roundings = 3;
           },
       .problem =
           [](int) {
             return operation_of(
                 scored_row({0.0, -0x1p-6 * (1.0 + kUnitF32 * kDown)}, {1.0, -1.0}));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.exp_arg_roundings = 2; }},
       .least = 0.9,
       .options = all_up});
  add({.term = "RoundingsOfTheShift",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF32;
             a.exp_shift_roundings = 8;
           },
       .problem = [](int) { return operation_of(one_above(1024.0, 15, 1024.0 - 0x1p-6)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.exp_shift_roundings = 4; }},
       .least = 0.9,
       .answer = BoundedAnswer::kLse,
       .options = all_up,
       .hooks = {.lse = exact_lse}});
  add({.term = "RoundingsOfTheShiftInBase2",  // fl(u c) - fl(m c)
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF32;
             a.exp_arg_roundings = 3;
             a.exp_shift_roundings = 2;
           },
       .problem =
           [](int i) {
             const double top = 1024.0 + 0x1p-3 * i;
             return operation_of(one_above(top, 15, top - 0x1p-6));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.exp_shift_roundings = 0; }},
       .least = 0.3,
       .answer = BoundedAnswer::kLse,
       .options = [](ModelOptions& o, int) { o.exponent = ExponentForm::kProducts2; },
       .hooks = {.lse = exact_lse},
       .problems = 64});
  add({.term = "RoundingsOfAnEarlierShift",  // the running maximum was further from 0
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF32;
             a.exp_shift_roundings = 8;
             a.tile = 4;
           },
       .problem =
           [](int) {
             HandRow row = scored_row({-8.0, -8.0 - 0x1p-6, 0.0}, {0.0, std::exp(8.0), -1.0});
             row.positions = {0, 1, 4};
             return operation_of(row);
           },
       .dropped = {.bound = [](judge::RowBound& b) { b.puv = 0.0; }},
       .least = 0.85,
       .options = all_up});
  // Keys pass a lagging maximum, and are rescaled when it catches up.
  add({.term = "LagOfTheMaximum",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF32;
             a.exp_arg_roundings = 16;
             a.max_lag = 3.0;
             a.tile = 16;
           },
       .problem =
           [](int) {
             std::vector<double> scores(18, 3.0);
             scores.front() = 0.0;
             scores.back() = 3.0 + 0x1p-6;
             HandRow row = scored_row(scores, std::vector<double>(18, 1.0));
             row.positions = {0};
             for (std::int64_t k = 16; k < 33; ++k) row.positions.push_back(k);
             return operation_of(row);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.max_lag = 1.5; }},
       .least = 0.75,
       .answer = BoundedAnswer::kLse,
       .options =
           [](ModelOptions& o, int i) {
             all_up(o, i);
             o.lag = 3.0;
           },
       .hooks = {.lse = exact_lse}});
  add({.term = "ShiftByALaggingMaximum",  // the maximum is 0, the shift is not
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF32;
             a.exp_shift_roundings = 8;
             a.max_lag = 3.0;
             a.tile = 16;
           },
       .problem =
           [](int) {
             std::vector<double> scores(17, 0.0);
             scores.front() = -3.0;
             HandRow row = scored_row(scores, std::vector<double>(17, 1.0));
             row.positions = {0};
             for (std::int64_t k = 16; k < 32; ++k) row.positions.push_back(k);
             return operation_of(row);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.max_lag = 0.0; }},
       .least = 0.6,
       .answer = BoundedAnswer::kLse,
       .options =
           [](ModelOptions& o, int i) {
             all_up(o, i);
             o.lag = 3.0;
           },
       .hooks = {.lse = [](double max, double sum) { return max - 3.0 + std::log(sum); }}});
  add({.term = "SizeOfTheValues",  // M: far keys
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF32;
             a.exp_arg_roundings = 8;
           },
       .problem =
           [](int) {
             return operation_of(scored_row({0.0, -8.0}, {-1.0, std::exp(8.0)}));
           },
       .dropped = {.bound = [](judge::RowBound& b) { b.puv = 0.0; }},
       .least = 0.85,
       .options = all_up});

  // ---- the exponential
  add({.term = "ErrorOfTheExponentialInValues",
       .contract = [](Arithmetic& a) { a.exp_rel = 0x1p-10; },
       .problem =
           [](int) {
             return operation_of(scored_row({0.0, -0x1p-6, -0x1p-6}, {0.0, 1.0, -1.0}));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.exp_rel = 0x1p-11; }},
       .least = 0.9,
       .hooks = {.weight = [](std::int64_t position, double w) {
         constexpr double kError = 0x1p-10 * kDown;
         return position == 0 ? w : position == 1 ? w * (1.0 + kError) : w * (1.0 - kError);
       }}});
  add({.term = "ErrorOfTheExponentialInTheSum",
       .contract = [](Arithmetic& a) { a.exp_rel = 0x1p-10; },
       .problem = [](int) { return operation_of(one_above(0.0, 15, -0x1p-6)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.exp_rel = 0x1p-11; }},
       .least = 0.9,
       .answer = BoundedAnswer::kLse,
       .options = all_up});
  add({.term = "ErrorOfEveryRescaleInValues",
       .contract =
           [](Arithmetic& a) {
             a.exp_rel = 0x1p-12;
             a.tile = 16;
           },
       .problem = [](int) { return operation_of(growing_tiles(16, 16, 0x1p-6)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.tile = 0; }},
       .least = 0.3,
       .options = [](ModelOptions& o, int) { o.rescale_error = Injection::kUp; }});
  add({.term = "ErrorOfEveryRescaleInTheSum",
       .contract =
           [](Arithmetic& a) {
             a.exp_rel = 0x1p-12;
             a.tile = 64;
           },
       .problem = [](int) { return operation_of(growing_tiles(64, 1, 0x1p-6)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.tile = 0; }},
       .least = 0.6,
       .answer = BoundedAnswer::kLse,
       .options = [](ModelOptions& o, int) { o.rescale_error = Injection::kUp; }});
  add({.term = "RoundingOfEveryRescaleInValues",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kBF16;
             a.tile = 66;
           },
       .problem = [](int) { return operation_of(growing_tiles(66, 66, 0.2475 / 66)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.tile = 0; }},
       .least = 0.3});
  add({.term = "RoundingOfEveryRescaleInTheSum",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kBF16;
             a.tile = 66;
           },
       .problem = [](int) { return operation_of(rounded_back(66, 0.2475)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.tile = 0; }},
       .least = 0.5,
       .answer = BoundedAnswer::kLse,
       .hooks = {.lse = exact_lse}});
  add({.term = "FlushedExponential",  // V1: lost weights count as much as their values
       .contract = [](Arithmetic& a) { a.exp_abs = 0x1p-10; },
       .problem =
           [](int) {
             return operation_of(scored_row({0.0, std::log(0x1p-10 * kDown)}, {0.0, 1024.0}));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.exp_abs = 0x1p-11; }},
       .least = 0.9,
       .options = [](ModelOptions& o, int) { o.flush_exp = true; }});
  add({.term = "FlushedExponentialInTheSum",
       .contract = [](Arithmetic& a) { a.exp_abs = 0x1p-10; },
       .problem = [](int) { return operation_of(one_above(0.0, 16, std::log(0x1p-10 * kDown))); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.exp_abs = 0x1p-11; }},
       .least = 0.9,
       .answer = BoundedAnswer::kLse,
       .options = [](ModelOptions& o, int) { o.flush_exp = true; }});
  add({.term = "UnderflowOfTheExponential",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF16;
             a.exp_rel = 0x1p-11;
             a.flush = true;
           },
       .problem =
           [](int) {
             return operation_of(scored_row({0.0, std::log(0x1p-14 * kDown)}, {0.0, 0x1p+14}));
           },
       .dropped = {.bound = [](judge::RowBound& b) { b.v = 0.0; }},
       .least = 0.9});
  return cases;
}

}  // namespace attn::property_tests
