// Sums of one row, in the order that the contract `reference` declares: dot products in 8 lanes,
// sums over keys in blocks of 64. So an error stays a few units in the last place at any length.
#pragma once

#include <Eigen/Core>
#include <limits>
#include <optional>
#include <span>

#include "reference/gather.h"

namespace attn::reference {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

// What a set of keys says about a row: its normalised output and the natural log of its softmax
// denominator. No keys: out 0, lse -inf.
struct State {
  Eigen::VectorXd out;  // [head_size_v]
  double lse = -kInf;
};

// Both of `length` elements, a multiple of kLanes.
double dot(const double* a, const double* b, Eigen::Index length);

// The keys of one row that are visible, and their scores.
struct ScoredKeys {
  std::vector<double> score;            // after cap and biases; never -inf
  std::vector<Eigen::Index> value_row;  // row of `values` below
};

// Softmax over the keys, times their values. `sink` is one more term of the denominator; lse counts
// it when lse_includes_sink. A score of NaN or +inf, or a sink of NaN, makes everything NaN; a sink
// of +inf takes all the weight.
State attend(const ScoredKeys& keys, const RowMatrix& values, Eigen::Index head_size_v,
             std::optional<double> sink, bool lse_includes_sink);

// The state of the union of two disjoint sets of keys. An empty side is the identity: its out is
// not read.
State merge(const State& a, const State& b);

// Adds the sink to a state of keys alone, as attend() would have.
State add_sink(const State& keys, double sink, bool lse_includes_sink);

}  // namespace attn::reference
