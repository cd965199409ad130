// How sharp the error bound is on normal inputs: attention with q, k, v about N(0, 1), head size
// 128, answered by the software model of a contract.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace attn::property_tests {

// Of every element of one output tensor.
struct BoundSharpness {
  std::vector<double> errors, sizes;          // |answer - right|, |right|
  std::vector<double> bounds, strict_bounds;  // certified; of the probabilistic tier
  int vacuous_rows = 0;

  // Largest bound over largest error: how much larger than the worst that happens.
  double looseness() const;
  double strict_looseness() const;
  double largest_ratio() const;  // |error| / bound of an element
  double largest_strict_ratio() const;
  double median_looseness() const;       // of bound / |error| over the elements
  double median_relative_bound() const;  // of bound / |right|
};

// Four decoding tokens, eight heads, over `keys` keys, for the named contract; operands and answer
// of the types such kernels have. Errors that the contract allows beyond roundings are drawn.
BoundSharpness bound_sharpness(std::string_view contract, std::int64_t keys, std::uint64_t seed);

}  // namespace attn::property_tests
