// Terms of the error of a logit that come after the score: soft cap, biases, storage.
#include <cmath>

#include "property_tests/bound_case.h"

namespace attn::property_tests {

std::vector<BoundCase> logit_terms() {
  std::vector<BoundCase> cases;
  const auto add = [&](BoundCase one) { cases.push_back(std::move(one)); };

  add({.term = "CapRelativeError",
       .contract = [](Arithmetic& a) { a.cap_rel = 0x1p-10; },
       .problem =
           [](int) {
             HandRow row = duel_of_scores(0x1p-6, 0.0);
             row.cap = 1.0;
             return operation_of(row);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.cap_rel = 0.0; }},
       .least = 0.9,
       .options = all_up});
  add({.term = "CapAbsoluteError",
       .contract = [](Arithmetic& a) { a.cap_abs = 0x1p-10; },
       .problem =
           [](int) {
             HandRow row = scored_row({0.5}, {1.0});
             row.cap = 8.0;
             return operation_of(row);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.cap_abs = 0.0; }},
       .least = 0.9,
       .answer = BoundedAnswer::kLse,
       .options = all_up});
  add({.term = "CapRoundings",
       .contract = [](Arithmetic& a) { a.vector = NumberFormat::kBF16; },
       // The quotient is rounded up by nearly half a last place to 1 + 6/128, the product with
       // 1 + 11/128 again; a third rounding is that of the cap as held.
       .problem =
           [](int) {
             HandRow row = duel_of_scores((1.0 + 11 * 0x1p-7) * (1.0 + 5.505 * 0x1p-7) * 0x1p-8, 0);
             row.cap = 1.0 + 11 * 0x1p-7;
             return operation_of(row);
           },
       .dropped = {.terms = [](judge::SoftmaxTerms& t) { t.soft_cap = 0.0; }},
       .least = 0.85,
       .options = all_up});
  add({.term = "CapUnderflow",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF16;
             a.flush = true;
           },
       .problem =
           [](int) {
             HandRow row = duel_of_scores(-0x1p-4 * kDown, 0x1p-4 * kDown);
             row.cap = 0x1p+10;
             return operation_of(row);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.flush = false; }},
       .least = 0.35});

  // ---- biases and storage
  add({.term = "BiasErrorByDistance",
       .contract = [](Arithmetic& a) { a.bias_rel = 0x1p-10; },
       .problem =
           [](int) {
             HandRow row = duel_of_scores(0.0, 0.0);
             row.biases = {0.0, -0x1p-5};
             return operation_of(row);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.bias_rel = 0.0; }},
       .least = 0.9,
       .options = all_up});
  add({.term = "BiasErrorByMaximum",
       .contract = [](Arithmetic& a) { a.bias_rel = 0x1p-10; },
       .problem =
           [](int) {
             HandRow row = scored_row({0.0}, {1.0});
             row.biases = {16.0};
             return operation_of(row);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.bias_rel = 0.0; }},
       .least = 0.9,
       .answer = BoundedAnswer::kLse,
       .options = all_up});
  add({.term = "BiasErrorByScore",  // the bias cancels the score: |bias| is a, not |u|
       .contract = [](Arithmetic& a) { a.bias_rel = 0x1p-10; },
       .problem =
           [](int) {
             HandRow row = scored_row({16.0}, {1.0});
             row.biases = {-16.0};
             return operation_of(row);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.bias_rel = 0.0; }},
       .least = 0.9,
       .answer = BoundedAnswer::kLse,
       .options = all_up});
  add({.term = "BiasAddition",  // ALiBi's form `zero` at large positions
       .contract = [](Arithmetic& a) { a.vector = NumberFormat::kF32; },
       .problem =
           [](int) {
             HandRow row = duel_of_scores(0x1p-14 * kUp, 0x1p-14 * kDown - 1.0);
             row.alibi_slope = 1.0;
             row.positions = {1024, 1025};
             return operation_of(row);
           },
       .dropped = {.terms = [](judge::SoftmaxTerms& t) { t.num_biases = 0; }},
       .least = 0.9});
  add({.term = "CancellingBiases",
       .contract = [](Arithmetic& a) { a.vector = NumberFormat::kF32; },
       .problem =
           [](int) {
             HandRow row = duel_of_scores(0x1p-11 * kUp, 0x1p-11 * kDown);
             row.alibi_slope = 0x1p+9;
             row.positions = {16, 17};
             row.biases = {-0x1p+13, -17 * 0x1p+9};
             return operation_of(row);
           },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowBiasMax] = 0.0; }},
       .least = 0.2});
  add({.term = "ErrorOfCancellingBiases",
       .contract = [](Arithmetic& a) { a.bias_rel = 0x1p-10; },
       .problem =
           [](int) {
             HandRow row = scored_row({0.0}, {1.0});
             row.alibi_slope = 16.0;
             row.positions = {1};
             row.biases = {-16.0};
             return operation_of(row);
           },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowBiasMax] = 0.0; }},
       .least = 0.9,
       .answer = BoundedAnswer::kLse,
       .options = all_up});
  add({.term = "UnderflowOfBiases",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF16;
             a.scale_roundings = 1;
             a.flush = true;
           },
       // Score, slope and bias of the second key are lost one after the other.
       .problem =
           [](int) {
             HandRow row = duel_of_scores(kDown, -kDown);
             row.scale = kNormal16;
             row.alibi_slope = -kNormal16 * kDown;
             row.biases = {kNormal16 * kDown, -kNormal16 * kDown};
             row.values = {{1024.0}, {-1024.0}};  // W does not count them
             return operation_of(row);
           },
       .dropped = {.terms = [](judge::SoftmaxTerms& t) { t.num_biases = 0; }},
       .least = 0.4});
  add({.term = "LogitStorage",
       .contract = [](Arithmetic& a) { a.logit.type = NumberFormat::kBF16; },
       .problem =
           [](int) {
             return operation_of(
                 duel_of_scores(8.0 + 8.0 * kUnitBF16 * kUp, 8.0 + 8.0 * kUnitBF16 * kDown));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.logit = {}; }},
       .least = 0.85});
  add({.term = "LogitQuantum",
       .contract = [](Arithmetic& a) { a.logit.type = NumberFormat::kF8E4M3FN; },
       .problem =
           [](int) { return operation_of(duel_of_scores(kQuantum8 * kUp, kQuantum8 * kDown)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.logit.scale = 0x1p+60; }},
       .least = 0.85});
  add({.term = "LogitRoundings",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF32;
             a.logit_roundings = 4;
           },
       .problem = [](int) { return operation_of(duel_of_scores(0.0, -0x1p-5)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.logit_roundings = 2; }},
       .least = 0.9,
       .options = all_up});
  return cases;
}

}  // namespace attn::property_tests
