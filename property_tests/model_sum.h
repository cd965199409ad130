// Sums of products as a contract's Summation declares them, rounded after every operation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attn/arithmetic.h"
#include "property_tests/model_options.h"
#include "property_tests/number_rounder.h"

namespace attn::property_tests {

// How one kernel adds up. All orders are within depth(S, n, span) of docs/numerics.md:
//  - products go to lane (position mod lanes), so that a lane gets at most ceil(span / lanes) of a
//    block's, in rising or falling order of positions; of a dot product also to `lanes` chunks of
//    ceil(n / lanes). Lanes are joined as a tree, blocks one after the other. Blocks begin at
//    multiples of `block` on a grid that may be shifted: at most ceil(span / block) + 1 of them.
//  - where the contract declares one lane, no blocks and no matrix steps, a product may pass n
//    roundings (n + 1 not fused), which is the worst of any binary tree with n leaves: the tree of
//    a dot product, and eight lanes over keys, of which those without a key add exact zeros.
//  - a matrix step adds up to mma_k exact products of one group of positions and the accumulator,
//    each truncated (or rounded) to the last place of the largest, then the result: mma_k + 2
//    errors of the accumulator's unit, relative to the sum of absolute values.
class SumRules {
 public:
  SumRules(const Summation& sum, bool flush, SumOrder order, std::int64_t grid_shift);

  // sum a_i b_i, i < size.
  double dot(const double* a, const double* b, std::int64_t size) const;

  std::int64_t lanes() const { return lanes_; }
  std::int64_t block_of(std::int64_t position) const {
    return block_ > 0 ? (position + shift_) / block_ : 0;
  }
  std::int64_t group_of(std::int64_t position) const { return (position + shift_) / mma_k_; }
  std::int64_t lane_of(std::int64_t position) const { return (position + shift_) % lanes_; }
  std::int64_t mma_k() const { return mma_k_; }

  // acc_j += a * b_j.
  void add_products(double a, std::span<const double> b, double* acc) const;
  // One matrix step: acc + sum of exact products.
  double matrix_step(double acc, std::span<const double> products) const;
  // Of sums that are complete in themselves: lanes, blocks.
  double join(double a, double b) const;
  // Neighbours first.
  double join_tree(std::span<double> sums) const;

 private:
  double step(double acc, double a, double b) const;
  double dot_block(const double* a, const double* b, std::int64_t size) const;
  double dot_tree(const double* a, const double* b, std::int64_t size) const;
  double matrix_block(const double* a, const double* b, std::int64_t size) const;

  NumberFormat type_;
  bool fused_;
  SumOrder order_;
  std::int64_t lanes_, block_, mma_k_, shift_;
  bool truncate_;
  bool tree_ = false;    // of dot products
  bool direct_ = false;  // f64: operations of the machine
  bool plain_f32_ = false;
  NumberRounder inner_, outer_;
};

// Sums over keys, one for each element of a value, that are rescaled while keys come.
class KeySums {
 public:
  KeySums(const SumRules& rules, std::int64_t width);

  // Positions of one block, or of one group of a matrix step, come one after the other. `value`
  // stays valid until the next finish() or rescale().
  void add(std::int64_t position, double weight, std::span<const double> value);
  void start_with(double term);  // first of all, in every sum
  void rescale(double factor, const NumberRounder& vector);
  // The sums; nothing is added afterwards.
  std::vector<double> finish();

 private:
  void end_group();
  void end_block();

  const SumRules& rules_;
  std::size_t width_;
  std::vector<std::vector<double>> lanes_;
  std::vector<double> total_;
  std::vector<bool> used_;  // lanes that hold something
  bool has_total_ = false;
  std::int64_t block_ = 0;
  bool in_block_ = false;
  std::int64_t group_ = 0;
  std::vector<double> pending_weights_;
  std::vector<const double*> pending_values_;
};

}  // namespace attn::property_tests
