// Whether an answer is right: gates in a fixed order, the first that fails names the fault.
//
//   canary      memory around the answer is as it was
//   nonfinite   NaN and infinities where the expected ones are
//   empty_rows  rows that see no key: out 0, lse -inf or the sink
//   exact       what every arithmetic computes exactly: caches after a write, `out` of rows whose
//               scores are exactly zero (judge/exact_lane.h), of rows with a sink of +inf: 0
//   hull        |out| within the ball that holds the row's values, also where there is no bound
//   bound       the certified bound (attn/error_bound.h)
//   strict      the probabilistic tier, when asked; it never certifies
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn/error_bound.h"
#include "attn/output.h"
#include "attn/verdict.h"

namespace attn {

enum class Gate : std::uint8_t { kCanary, kNonfinite, kEmptyRows, kExact, kHull, kBound, kStrict };
std::string_view name(Gate gate);  // "canary", ...

struct NamedView {
  std::string name;  // as in attn/output.h
  TensorView view;
};

// An answer as a backend left it.
struct ActualAnswer {
  std::vector<NamedView> tensors;
  LseForm lse_form;           // translated here and nowhere else
  std::string canary_damage;  // what happened to memory around it; empty = nothing
};

// The right answer in LseForm{}, with its conditioning sums; caches, codes.
struct ExpectedAnswer {
  Expectation expectation;
  std::vector<NamedView> tensors;  // all outputs by name; `expectation` views the same memory
  PrecisionContract contract{"reference"};  // of its own arithmetic
};

struct JudgeOptions {
  PrecisionContract contract;  // of the arithmetic that answered
  bool strict = false;         // also the probabilistic tier

  // `out` of a plain computation in the same precision, for flashattention_2x; optional.
  TensorView naive;
};

// Figures that decide nothing, of `out` (of the indexer: logits), over the elements where both
// sides are finite.
struct Telemetry {
  double nmse = 0.0;     // sum (a - e)^2 / sum e^2
  double cosine = 1.0;   // of the whole tensors; 1 when both are 0, 0 when one is
  double max_ulp = 0.0;  // largest |a - e| in units in the last place of e in the stored type
  double max_abs = 0.0;
  double max_rel = 0.0;
  std::int64_t left_out = 0;  // elements where either side is not finite
};

struct Judgement {
  Verdict verdict = Verdict::kPass;
  std::optional<Gate> gate;  // the first that failed
  std::string reason;        // "out[3,1,7] is off by 4.1 times its bound", or why it is mistrusted
  // worst.bound is the certified bound and the expectation's own, infinite where there is none;
  // ratio = |error| / worst.bound, of an element outside the hull and without a bound |out| / hull.
  // Indices of lse are [head, token] whatever its layout.
  std::vector<TensorComparison> tensors;
  std::optional<Verdict> strict;       // of the probabilistic tier, when asked and defined
  std::optional<Telemetry> telemetry;  // none without an element where both sides are finite
  // What peers' tolerances would have said: true = pass; none where a policy needs what is absent.
  std::map<std::string, std::optional<bool>, std::less<>> policies;
  std::int64_t rows = 0;          // rows that see a key and have a finite answer
  std::int64_t vacuous_rows = 0;  // of these, without a bound
};

// Judges every tensor that is an output of the operation. Error when `expected` has one that
// `actual` lacks, or the other way round, or when shapes or types do not fit. Deterministic.
//
// Rows out of the contract's range (RowError::out_of_range) are passed over and count as vacuous.
// NaN and infinities must stand where expected, with the expected sign; where |expected| and its
// bound exceed the largest finite value of the stored type, that value and infinity of the expected
// sign are accepted too. +0 and -0 are equal.
//
// Mistrusted (every gate passed, but that proves nothing): no row sees a key and has a finite
// answer; a row has no bound; `out` (logits) has several finite elements and the expected ones are
// all 0, or in several rows all equal; or zeros would pass, no expected element of `out` (logits)
// being larger than its bound, but not because all of them are known exactly.
Judgement judge_answer(const AttentionProblem& problem, const ExpectedAnswer& expected,
                       const ActualAnswer& actual, const JudgeOptions& options);

}  // namespace attn
