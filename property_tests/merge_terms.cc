// Terms of parts that are merged, through accumulators or through log-sum-exps.
#include <cmath>

#include "property_tests/bound_case.h"

namespace attn::property_tests {
namespace {

void scalars_drawn(ModelOptions& options, int i) {
  options.seed = static_cast<std::uint64_t>(i);
  options.scalar_error = Injection::kRandom;
}

void merge_of_lse(Arithmetic& a) {
  a.splits = 2;
  a.merge_kind = MergeKind::kLse;
}

// Eight parts folded one after the other. In a sum of 8 bits, from 66 on, every product of the sum
// and the next part's factor is rounded back to the sum, and the part's own 1.2525 up to 1.5.
HandRow folded_parts() {
  HandRow row = scored_row(std::vector<double>(66, 0.0), std::vector<double>(66, 1.0));
  for (std::int64_t k = 0; k < 66; ++k) row.positions.push_back(k);
  double top = 0.0;
  double sum = 66.0;
  for (std::int64_t part = 1; part < 8; ++part) {
    top -= std::log1p(-0.2475 / sum);
    row.keys.push_back({top});
    row.keys.push_back({top + std::log(33 * 0x1p-7)});
    row.values.insert(row.values.end(), 2, {1.0});
    row.positions.push_back(66 * part);
    row.positions.push_back(66 * part + 65);
    sum += 1.5;
  }
  return row;
}

BoundCase folded(const char* term, std::function<void(Arithmetic&)> dropped) {
  return {.term = term,
          .contract =
              [](Arithmetic& a) {
                a.vector = NumberFormat::kBF16;
                a.splits = 8;
                a.merge_depth = 7;
              },
          .problem = [](int) { return operation_of(folded_parts()); },
          .dropped = {.arithmetic = std::move(dropped)},
          .least = 0.7,
          .answer = BoundedAnswer::kLse,
          .options = [](ModelOptions& o, int) { o.merge = MergeOrder::kFold; },
          .hooks = {.lse = exact_lse}};
}

// 64 keys in one part, one in the other, of the same score: values whose output is 0.
HandRow many_and_one() {
  std::vector<double> values(65, -1.0);
  values[64] = 64.0;
  HandRow row = scored_row(std::vector<double>(65, 0.0), values);
  for (std::int64_t k = 0; k < 64; ++k) row.positions.push_back(k);
  row.positions.push_back(127);
  return row;
}

// Three parts of about the log-sum-exp 1024 and -1 in the last, apart from which all values are 1.
// The first is a little above the middle of two float32 numbers; the others are such that what is
// merged is so again. The last is a little below such a middle.
HandRow folded_lse() {
  constexpr double kStep = 0x1p-13;  // between float32 numbers from 1024 on
  std::vector<double> scores = {1024.0 + kStep / 2.0 * kUp};
  double stored = 1024.0 + kStep;
  for (int part = 0; part < 2; ++part) {
    double score = stored - 5.0;
    double place = 0.0;
    for (; !(place > 0.501 && place < 0.51); score += kStep) {
      const double merged = stored + std::log1p(std::exp(score + kStep - stored));
      place = merged / kStep - std::floor(merged / kStep);
    }
    scores.push_back(score);
    stored = std::ceil((stored + std::log1p(std::exp(score - stored))) / kStep) * kStep;
  }
  scores.push_back((std::floor(stored / kStep) + 0.5 * kDown) * kStep);
  return scored_row(scores, {1.0, 1.0, 1.0, -1.0});
}

// Merging of two states whose log-sum-exps are stored as `type`.
DrawnOperation two_states(DType type, double first, double second, bool base_2) {
  DrawnOperation drawn;
  MergeStatesOp op;
  op.out_parts = drawn.memory.keep(HostTensor(DType::kF64, {2, 1, 1, 1}, {1.0, -1.0}));
  op.lse_parts = drawn.memory.keep(HostTensor(type, {2, 1, 1}, {first, second}));
  op.lse_base_2 = base_2;
  drawn.operation = op;
  return drawn;
}

}  // namespace

std::vector<BoundCase> merge_terms() {
  std::vector<BoundCase> cases;
  const auto add = [&](BoundCase one) { cases.push_back(std::move(one)); };

  add({.term = "ExponentialOfAPart",
       .contract =
           [](Arithmetic& a) {
             a.exp_rel = 0x1p-12;
             a.splits = 2;
           },
       .problem =
           [](int) {
             HandRow row = scored_row(std::vector<double>(32, -0x1p-6), std::vector<double>(32, 1));
             row.keys[0][0] = 0.0;
             row.keys[31][0] = 0x1p-6;
             for (std::int64_t k = 0; k < 31; ++k) row.positions.push_back(k);
             row.positions.push_back(61);
             return operation_of(row);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.merge_depth = 0; }},
       .least = 0.9,
       .answer = BoundedAnswer::kLse,
       .options = all_up});
  add(folded("ProductsOfParts", [](Arithmetic& a) { a.merge_depth = 0; }));
  add(folded("AdditionsOfParts", [](Arithmetic& a) { a.splits = 2; }));
  add({.term = "PartStorage",
       .contract =
           [](Arithmetic& a) {
             a.splits = 4;
             a.merge_depth = 3;
             a.merge_part.type = NumberFormat::kBF16;
           },
       // Stored three times on the way, always rounded up.
       .problem =
           [](int) {
             const double up = kUnitBF16 * kUp;
             HandRow row = scored_row({0, 0, 0, 0},
                                      {1.0 + up, kUnitBF16 * 0x1.02p+0, kUnitBF16 * 0x1.02p+0, 0});
             return operation_of(row);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.merge_depth = 1; }},
       .least = 0.85,
       .options = [](ModelOptions& o, int) { o.merge = MergeOrder::kFold; }});
  add({.term = "PartQuantum",
       .contract =
           [](Arithmetic& a) {
             merge_of_lse(a);
             a.splits = 8;
             a.merge_depth = 7;
             a.merge_part.type = NumberFormat::kF16;
           },
       // Every further part adds a little more than a quantum, which is doubled when it is stored.
       .problem =
           [](int) {
             std::vector<double> scores(8, std::log(0x1.08p-11));
             std::vector<double> values(8, 0x1p-14);
             scores[0] = 0.0;
             values[0] = 0x1p-25 * kUp;
             return operation_of(scored_row(scores, values));
           },
       .dropped = {.bound = [](judge::RowBound& b) { b.constant /= 8.0; }},
       .least = 0.4,
       .options = [](ModelOptions& o, int) { o.merge = MergeOrder::kFold; }});
  add({.term = "StorageOfPartsLse",  // merged at |m| about 1000
       .contract =
           [](Arithmetic& a) {
             merge_of_lse(a);
             a.merge_lse = NumberFormat::kF32;
           },
       .problem =
           [](int) {
             return operation_of(scored_row(
                 {1024.0 * (1.0 + kUnitF32 * kUp), 1024.0 * (1.0 + kUnitF32 * kDown)}, {1, -1}));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.merge_lse = NumberFormat::kExact; }},
       .least = 0.9});
  add({.term = "StorageOfFoldedLse",
       .contract =
           [](Arithmetic& a) {
             merge_of_lse(a);
             a.splits = 4;
             a.merge_depth = 3;
             a.merge_lse = NumberFormat::kF32;
           },
       .problem = [](int) { return operation_of(folded_lse()); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.merge_depth = 1; }},
       .least = 0.6,
       .options = [](ModelOptions& o, int) { o.merge = MergeOrder::kFold; }});
  add({.term = "LogarithmOfAPart",
       .contract =
           [](Arithmetic& a) {
             merge_of_lse(a);
             a.log_abs = 0x1p-10;
           },
       .problem =
           [](int) {
             return operation_of(scored_row({0.0, 0.0}, {1.0, -1.0}));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.log_abs = 0x1p-11; }},
       .least = 0.7,
       .options = scalars_drawn,
       .problems = 64});
  add({.term = "RoundingsOfPartsLse",
       .contract =
           [](Arithmetic& a) {
             merge_of_lse(a);
             a.vector = NumberFormat::kF32;
             a.log_roundings = 8;
           },
       .problem =
           [](int) {
             return operation_of(scored_row({1024.0, 1024.0}, {1.0, -1.0}));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.log_roundings = 3; }},
       .least = 0.4,
       .options = scalars_drawn,
       .problems = 256});
  add({.term = "RoundingsOfADistantPartsLse",
       .contract =
           [](Arithmetic& a) {
             merge_of_lse(a);
             a.vector = NumberFormat::kF32;
             a.log_roundings = 8;
           },
       .problem =
           [](int) {
             return operation_of(scored_row({0.0, -16.0}, {-1.0, std::exp(16.0)}));
           },
       .dropped = {.bound = [](judge::RowBound& b) { b.puv = 0.0; }},
       .least = 0.6,
       .options = all_up});
  add({.term = "RoundingsOfALargePartsLse",  // ln l
       .contract =
           [](Arithmetic& a) {
             merge_of_lse(a);
             a.vector = NumberFormat::kF32;
             a.log_roundings = 16;
           },
       .problem = [](int) { return operation_of(many_and_one()); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.log_roundings = 3; }},
       .least = 0.3,
       .options = all_up});
  add({.term = "ArgumentOfALargePart",
       .contract =
           [](Arithmetic& a) {
             merge_of_lse(a);
             a.vector = NumberFormat::kF32;
             a.log_roundings = 1;
             a.exp_arg_roundings = 16;
           },
       .problem = [](int) { return operation_of(many_and_one()); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.exp_arg_roundings = 0; }},
       .least = 0.3,
       .options = all_up});
  add({.term = "NormalisationOfEveryPart",
       .contract =
           [](Arithmetic& a) {
             merge_of_lse(a);
             a.vector = NumberFormat::kF32;
             a.normalize_roundings = 30;
             a.log_roundings = 1;
           },
       .problem =
           [](int) {
             return operation_of(scored_row({0, 0, 0, 0, 0, 0}, {1, 1, 1, -1, -1, -1}));
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.normalize_roundings = -2; }},
       .least = 0.6,
       .options = all_up});
  add({.term = "SinkAsAPart",
       .contract =
           [](Arithmetic& a) {
             merge_of_lse(a);
             a.merge_lse = NumberFormat::kF32;
           },
       .problem =
           [](int) {
             HandRow row = scored_row({1024.0 * (1.0 + kUnitF32 * kUp)}, {1.0});
             row.sink = 1024.0 * (1.0 + kUnitF32 * kDown);
             return operation_of(row);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.merge_lse = NumberFormat::kExact; }},
       .least = 0.45,
       .options = [](ModelOptions& o, int) { o.sink = SinkPlace::kPart; }});

  // ---- merge_states
  add({.term = "StatesOfBase2",
       .contract = [](Arithmetic& a) { a.vector = NumberFormat::kF32; },
       .problem =
           [](int i) {
             return two_states(DType::kF32, 1480.0 + 0x1p-2 * i,
                               1480.0 + 0x1p-2 * i + 0x1p-13 * (i % 8), true);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.logit_roundings = 0; }},
       .least = 0.35,
       .problems = 64});
  add({.term = "StatesReadInANarrowerType",
       .contract = [](Arithmetic& a) { a.vector = NumberFormat::kF32; },
       .problem =
           [](int) {
             return two_states(DType::kF64, 1024.0 * (1.0 + kUnitF32 * kUp),
                               1024.0 * (1.0 + kUnitF32 * kDown), false);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.logit_roundings = 0; }},
       .least = 0.9,
       .read_as =
           [](int) {
             return two_states(DType::kF64, 1024.0 * (1.0 + 2.0 * kUnitF32), 1024.0, false);
           }});
  return cases;
}

}  // namespace attn::property_tests
