// What one row of any operation gives to the softmax, as plain numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace attn::property_tests {

// A row and the query head it belongs to.
struct ModelPlace {
  std::int64_t request = 0;
  std::int64_t row = 0;  // in its request
  std::int64_t token = 0;
  std::int64_t head = 0;
};

// Operands as the kernel multiplies them: decoded, then rounded as the contract says.
struct ModelRow {
  ModelPlace place;
  std::vector<double> query;  // [head_size]

  // Of each visible key, ascending positions (of a sparse list: places in it). The owner of the
  // rows is whoever made this one.
  std::vector<std::int64_t> positions;
  std::vector<const double*> keys;    // [head_size] each
  std::vector<const double*> values;  // [head_size_v] each
  std::vector<double> biases;         // [keys, num_biases], in the order they are added
  std::vector<double> scores;         // given instead of query and keys when a merge has no scores

  std::int64_t num_biases = 0;
  std::int64_t head_size_v = 0;
  double scale = 1.0;
  double cap = 0.0;
  std::optional<double> sink;
  bool lse_includes_sink = true;

  // [head_size_v, out_size]: the normalised output is multiplied by it; else absent.
  const double* out_projection = nullptr;
  std::int64_t out_size = 0;

  std::int64_t num_keys() const { return static_cast<std::int64_t>(positions.size()); }
};

}  // namespace attn::property_tests
