// Terms of the error of a score: c_a and c_0 before cap and biases.
//
// Most cases are a duel: two keys of about the same weight with the values 1 and -1, whose logits
// are off in opposite directions, so that the output moves by as much as one of them.
#include <cmath>
#include <memory>

#include "property_tests/bound_case.h"
#include "property_tests/hand_row.h"

namespace attn::property_tests {
namespace {

HandRow duel(const std::vector<double>& query, const std::vector<double>& up,
             const std::vector<double>& down) {
  HandRow row;
  row.query = query;
  row.keys = {up, down};
  row.values = {{1.0}, {-1.0}};
  return row;
}

// Elements times `factor`, in memory that lives as long as the hook.
std::function<void(ModelRow&)> with_scaled_keys(double factor) {
  return [factor, held = std::make_shared<std::vector<std::vector<double>>>()](ModelRow& row) {
    held->clear();
    for (const double* key : row.keys) {
      held->emplace_back(key, key + row.query.size());
      for (double& x : held->back()) x *= factor;
    }
    for (std::size_t i = 0; i < row.keys.size(); ++i) row.keys[i] = (*held)[i].data();
    row.scale /= factor;
  };
}

}  // namespace

std::vector<BoundCase> score_terms() {
  std::vector<BoundCase> cases;
  const auto add = [&](BoundCase one) { cases.push_back(std::move(one)); };

  // ---- q.k
  add({.term = "HalfOfTheDepthOfTheDot",
       .contract = [](Arithmetic& a) { a.dot.type = NumberFormat::kF32; },
       .problem =
           [](int) {
             return operation_of(
                 duel(all(64, 1.0), chain(64, kUnitF32 * kUp), chain(64, kUnitF32 * kDown)));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.dot.lanes = 2; }},
       .least = 0.95});
  add({.term = "JoinsOfLanesInTheDot",
       .contract =
           [](Arithmetic& a) {
             a.dot.type = NumberFormat::kF32;
             a.dot.lanes = 4;
           },
       // The first product, its sum with the second lane, that with the other two are rounded.
       .problem =
           [](int) {
             const double up = 1.0 + kUnitF32 * kUp;
             const double down = 1.0 + kUnitF32 * kDown;
             return operation_of(duel(all(4, 1.0), {up, kUnitF32 * kUp, kUnitF32 * kUp, 0.0},
                                      {down, kUnitF32 * kDown, kUnitF32 * kDown, 0.0}));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.dot.lanes = 1; },
                   .terms = [](judge::SoftmaxTerms& t) { t.dot_length = 1; }},
       .least = 0.95});
  add({.term = "JoinsOfBlocksInTheDot",
       .contract =
           [](Arithmetic& a) {
             a.dot.type = NumberFormat::kF32;
             a.dot.block = 4;
           },
       // Blocks of tiny sums join one of about 1; inside the first the chain rounds as well.
       .problem =
           [](int) {
             const auto blocks = [](double rest) {
               std::vector<double> key = chain(64, 0.0);
               for (std::size_t d = 1; d < 4; ++d) key[d] = rest;
               for (std::size_t d = 4; d < 64; d += 4) key[d] = rest;
               return key;
             };
             return operation_of(
                 duel(all(64, 1.0), blocks(kUnitF32 * kUp), blocks(kUnitF32 * kDown)));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.dot.block = 0; },
                   .terms = [](judge::SoftmaxTerms& t) { t.dot_length = 4; }},
       .least = 0.8});
  add({.term = "CoarseAccumulatorInsideABlock",
       .contract =
           [](Arithmetic& a) {
             a.dot.type = NumberFormat::kF32;
             a.dot.block = 8;
             a.dot.inner = 0x1p-13;
           },
       .problem =
           [](int) {
             return operation_of(
                 duel(all(8, 1.0), chain(8, 0x1p-13 * kUp), chain(8, 0x1p-13 * kDown)));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.dot.inner.reset(); }},
       .least = 0.85});
  add({.term = "AddendsOfAMatrixStepInTheDot",
       .contract =
           [](Arithmetic& a) {
             a.dot.type = NumberFormat::kF32;
             a.dot.mode = RoundingMode::kTruncate;
             a.dot.mma_k = 4;
           },
       // Each loses nearly a unit of truncation, 2^-23, of the first; negative ones likewise.
       .problem =
           [](int) {
             const double lost = 0x1p-23 * kDown;
             std::vector<double> key = chain(8, lost);
             key[0] += lost;
             std::vector<double> negative;
             for (const double x : key) negative.push_back(-x);
             HandRow row = duel(all(8, 1.0), negative, key);
             row.scale = 0x1p-6;
             return operation_of(row);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.dot.mma_k = 0; },
                   .terms = [](judge::SoftmaxTerms& t) { t.dot_length = 2; }},
       .least = 0.45});
  add({.term = "QueryRounding",
       .contract = [](Arithmetic& a) { a.query.type = NumberFormat::kBF16; },
       .problem =
           [](int) {
             return operation_of(
                 duel({1.0 + kUnitBF16 * kUp, 1.0 + kUnitBF16 * kDown}, {1.0, 0.0}, {0.0, 1.0}));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.query = {}; }},
       .least = 0.95});
  add({.term = "KeyRounding",
       .contract = [](Arithmetic& a) { a.key.type = NumberFormat::kBF16; },
       .problem =
           [](int) {
             return operation_of(duel_of_scores(1.0 + kUnitBF16 * kUp, 1.0 + kUnitBF16 * kDown));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.key = {}; }},
       .least = 0.95});
  add({.term = "QueryQuantum",
       .contract = [](Arithmetic& a) { a.query.type = NumberFormat::kF8E4M3FN; },
       .problem =
           [](int) {
             return operation_of(
                 duel({kQuantum8 * kUp, kQuantum8 * kDown}, {8.0, 0.0}, {0.0, 8.0}));
           },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowKeyL1] = 0.0; }},
       .least = 0.85});
  add({.term = "KeyQuantum",
       .contract = [](Arithmetic& a) { a.key.type = NumberFormat::kF8E4M3FN; },
       .problem =
           [](int) { return operation_of(duel({8.0}, {kQuantum8 * kUp}, {kQuantum8 * kDown})); },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowQueryL1] = 0.0; }},
       .least = 0.85});
  add({.term = "ProductOfQuanta",
       .contract =
           [](Arithmetic& a) {
             a.query.type = NumberFormat::kF8E4M3FN;
             a.key.type = NumberFormat::kF8E4M3FN;
           },
       // Both are doubled: four times the product, of which three are three terms.
       .problem =
           [](int) {
             HandRow row =
                 duel(all(4, kQuantum8 * kUp), all(4, kQuantum8 * kUp), all(4, -kQuantum8 * kUp));
             row.scale = 0x1p+10;
             return operation_of(row);
           },
       .dropped = {.terms = [](judge::SoftmaxTerms& t) { t.dot_length = 0; }},
       .least = 0.8});
  add({.term = "FlushedQuery",
       .contract =
           [](Arithmetic& a) {
             a.query = {NumberFormat::kBF16, RoundingMode::kNearest, 1.0, true};
           },
       .problem =
           [](int) {
             const double small = 0x1p-126 - 0x1p-132;  // a subnormal bfloat16
             HandRow row = duel({small, -small}, {0x1p+122, 0.0}, {0.0, 0x1p+122});
             row.type = DType::kBF16;  // no conversion, flushed for all that
             return operation_of(row);
           },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowKeyL1] = 0.0; }},
       .least = 0.8});
  add({.term = "FlushedKey",
       .contract =
           [](Arithmetic& a) {
             a.key = {NumberFormat::kF16, RoundingMode::kNearest, 1.0, true};
           },
       .problem =
           [](int) {
             return operation_of(duel({0x1p+10}, {-kNormal16 * kDown}, {kNormal16 * kDown}));
           },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowQueryL1] = 0.0; }},
       .least = 0.8});
  add({.term = "QueryReadAsZero",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF16;
             a.flush = true;
           },
       .problem =
           [](int) { return operation_of(duel({kNormal16 * kDown}, {0x1p+10}, {-0x1p+10})); },
       .dropped = {.sums = [](judge::RowSums& s) { s[kRowKeyL1] = 0.0; }},
       .least = 0.8,
       .hooks = {.change_row = [](ModelRow& row) { row.query[0] = 0.0; }}});
  add({.term = "ScaleThatJoinsARoundedKeyLater",
       .contract = [](Arithmetic& a) { a.key.type = NumberFormat::kF8E4M3FN; },
       .problem =
           [](int) {
             HandRow row = duel_of_scores(0x1p-4 * kUp, 0x1p-4 * kDown);
             row.key_scale = 0x1p+6;  // stored: about half the least code of the operand's type
             return operation_of(row);
           },
       .dropped = {.terms = [](judge::SoftmaxTerms& t) { t.key_scale = 1.0; }},
       .least = 0.75,
       .hooks = {.change_row = [](ModelRow& row) {
         static constexpr double kTwice = 0x1p-3, kZero = 0.0;
         row.keys = {&kTwice, &kZero};
       }}});
  add({.term = "UnderflowOfProducts",
       .contract =
           [](Arithmetic& a) {
             a.dot.type = NumberFormat::kF16;
             a.flush = true;
           },
       .problem =
           [](int) {
             HandRow row =
                 duel(all(16, 1.0), all(16, kNormal16 * kDown), all(16, -kNormal16 * kDown));
             row.scale = 0x1p+6;
             return operation_of(row);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.dot.type = NumberFormat::kF32; }},
       .least = 0.35});
  add({.term = "UnderflowBeforeAScale",
       .contract =
           [](Arithmetic& a) {
             a.dot.type = NumberFormat::kF16;
             a.flush = true;
           },
       .problem =
           [](int) {
             HandRow row = duel(all(16, 1.0), all(16, 0x1p-8 * kDown), all(16, -0x1p-8 * kDown));
             row.key_scale = 0x1p+6;
             return operation_of(row);
           },
       .dropped = {.terms = [](judge::SoftmaxTerms& t) { t.key_scale = 1.0; }},
       .least = 0.35,
       .hooks = {.change_row = with_scaled_keys(0x1p-6)}});
  add({.term = "UnderflowBeforeAScaleOfTheQuery",
       .contract =
           [](Arithmetic& a) {
             a.dot.type = NumberFormat::kF16;
             a.flush = true;
           },
       .problem =
           [](int) {
             HandRow row = duel(all(16, 1.0), all(16, 0x1p-8 * kDown), all(16, -0x1p-8 * kDown));
             row.query_scale = 0x1p+6;
             return operation_of(row);
           },
       .dropped = {.terms = [](judge::SoftmaxTerms& t) { t.query_scale = 1.0; }},
       .least = 0.35,
       .hooks = {.change_row = with_scaled_keys(0x1p-6)}});
  add({.term = "UnderflowBeforeAScaleInTheCache",
       .contract =
           [](Arithmetic& a) {
             a.dot.type = NumberFormat::kF16;
             a.flush = true;
           },
       .problem =
           [](int) {
             HandRow row = duel(all(16, 0x1p-5 * kDown), all(16, 0x1p-3), all(16, -0x1p-3));
             row.token_scale = 0x1p+6;
             return operation_of(row);
           },
       .dropped = {.terms = [](judge::SoftmaxTerms& t) { t.key_scale_in_cache = false; }},
       .least = 0.35,
       .hooks = {.change_row = with_scaled_keys(0x1p-6)}});
  add({.term = "UnderflowOfAScaledQuery",
       .contract =
           [](Arithmetic& a) {
             a.dot.type = NumberFormat::kF16;
             a.query.scale = 0x1p-6;
             a.flush = true;
           },
       .problem =
           [](int) {
             return operation_of(
                 duel(all(16, 1.0), all(16, 0x1p-8 * kDown), all(16, -0x1p-8 * kDown)));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.query.scale = 1.0; }},
       .least = 0.35,
       .hooks = {.change_row = with_scaled_keys(0x1p-6)}});
  add({.term = "RoundingsOfTheScale",
       .contract =
           [](Arithmetic& a) {
             a.vector = NumberFormat::kF32;
             a.scale_roundings = 8;
           },
       .problem = [](int) { return operation_of(duel_of_scores(0x1p-6, 0.0)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.scale_roundings = 4; }},
       .least = 0.8,
       .options = all_up});
  return cases;
}

}  // namespace attn::property_tests
