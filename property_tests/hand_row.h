// One row of attention, written down by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "attn/dtype.h"
#include "property_tests/drawn_operation.h"

namespace attn::property_tests {

// One row of attention, one head. Keys without a position follow one another from 0; positions
// between those given are masked.
struct HandRow {
  DType type = DType::kF64;  // of all but scales
  std::vector<double> query = {1.0};
  std::vector<std::vector<double>> keys, values;
  std::vector<std::int64_t> positions;
  std::vector<double> biases;         // attn_bias of each key; none = no such tensor
  std::optional<double> alibi_slope;  // times the position
  double scale = 1.0, cap = 0.0;
  std::optional<double> sink;
  bool lse_includes_sink = true;
  std::optional<double> query_scale, key_scale, value_scale;  // multiply what is stored
  // Keys and values stored as f8_e4m3fn, each token with this scale; the rest above is of kPlain.
  std::optional<double> token_scale;
};
DrawnOperation operation_of(const HandRow& row);

// Keys of the given scores under the query {1}, values of one element.
HandRow scored_row(const std::vector<double>& scores, const std::vector<double>& values);

// One key of score `top` and `count` of `others`, all with the value 1.
HandRow one_above(double top, std::size_t count, double others);

// Two keys with the values 1 and -1: the output moves as much as either score when they are off in
// opposite directions.
HandRow duel_of_scores(double up, double down);

// `size` times the same element.
std::vector<double> all(std::size_t size, double element);

// 1 and then `rest`, of `size` elements: a chain that adds each of them to something above 1.
std::vector<double> chain(std::size_t size, double rest);

}  // namespace attn::property_tests
