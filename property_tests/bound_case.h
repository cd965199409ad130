// A problem, a contract and a kernel that together need one term of the error bound: the kernel
// keeps the contract, its error is within the bound, and beyond the bound without that term.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "attn/arithmetic.h"
#include "judge/softmax_bound.h"
#include "property_tests/hand_row.h"
#include "property_tests/model_hooks.h"
#include "property_tests/model_options.h"

namespace attn::property_tests {

// Of a unit roundoff or quantum: a little more is rounded up, a little less down, each by nearly
// the whole of it.
inline constexpr double kUp = 1.0 + 0x1p-10;
inline constexpr double kDown = 1.0 - 0x1p-10;
inline constexpr double kUnitF16 = 0x1p-11, kUnitBF16 = 0x1p-8,
                        kUnitF32 = 0x1p-24;   // unit roundoffs
inline constexpr double kQuantum8 = 0x1p-10;  // of f8_e4m3fn
inline constexpr double kNormal16 = 0x1p-14;  // smallest normal f16

// What a kernel does beside what ModelOptions say.
struct KernelHooks {
  std::function<void(ModelRow&)> change_row = {};
  // Of the key at a position, in the row sum and in the sum with values.
  std::function<double(std::int64_t position, double weight)> weight = {};
  std::function<double(double)> out = {};
  // Instead of the model's, of the shift and the row sum at the end.
  std::function<double(double max, double sum)> lse = {};
};

// Rounds nothing, whatever `vector` is: a KernelHooks::lse that shows the row sum.
double exact_lse(double max, double sum);

// How a bound is evaluated without its term: each is applied where it is given.
struct DroppedTerm {
  std::function<void(Arithmetic&)> arithmetic = {};
  std::function<void(judge::SoftmaxTerms&)> terms = {};
  std::function<void(judge::RowSums&)> sums = {};
  std::function<void(judge::RowBound&)> bound = {};
};

enum class BoundedAnswer : std::uint8_t { kOut, kLse };

struct BoundCase {
  std::string term;                                 // of the bound; names the test
  std::function<void(Arithmetic&)> contract = {};   // from exact arithmetic, two passes, one part
  std::function<DrawnOperation(int)> problem = {};  // the i-th
  DroppedTerm dropped = {};
  double least = 0.5;  // the largest ratio is above this: the term cannot be much smaller
  BoundedAnswer answer = BoundedAnswer::kOut;
  std::function<void(ModelOptions&, int)> options = {};  // changes the plainest kernel's
  KernelHooks hooks = {};
  int problems = 1;
  // What the model computes instead of `problem`, where a kernel rounds what the model takes as it
  // is.
  std::function<DrawnOperation(int)> read_as = {};
};

// Nothing is rounded, in two passes over one part.
Arithmetic exact_arithmetic();
// Every error that the contract allows is put in upwards.
void all_up(ModelOptions& options, int i);

// Largest |error| / (bound + error of the reference) over the problems and elements; infinite where
// there is no bound.
struct BoundRatios {
  double full = 0.0;
  double without_term = 0.0;
};
BoundRatios ratios_of(const BoundCase& bound_case);

std::ostream& operator<<(std::ostream& stream, const BoundCase& bound_case);

// The tables, by where the term is in docs/numerics.md.
std::vector<BoundCase> score_terms();
std::vector<BoundCase> logit_terms();
std::vector<BoundCase> exponent_terms();
std::vector<BoundCase> weight_terms();
std::vector<BoundCase> sum_terms();
std::vector<BoundCase> merge_terms();
std::vector<BoundCase> answer_terms();
std::vector<BoundCase> latent_terms();

}  // namespace attn::property_tests
