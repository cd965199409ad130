// One row: the softmax over the keys it sees, its output, and the sums that say how sensitive they
// are (attn/conditioning.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "golden/exact/elements.h"
#include "golden/exact/real.h"

namespace attn::exact {

// A key that the row sees, or, of a logit of -inf, would see.
struct ScoredKey {
  std::int64_t place = 0;  // its position; in a sparse list its place in the list
  Real logit;              // u, after cap and biases
  Real size;               // a = |scale| * sum |q_d k_d|
  Real bias_size;          // sum of |bias terms|
  Real key_l1;             // |scale| * sum |k_d|
  Real key_max;            // max |k_d|
};

struct QuerySize {
  Real l1;   // |scale| * sum |q_d|
  Real max;  // max |q_d|
};

struct RowState {
  Elements out;  // size: cond_pv
  std::vector<Real> cond_pav, cond_puv, cond_v;
  Real lse, lse_size;            // with the sink, and the size of what it was summed from
  Real lse_keys, lse_keys_size;  // without the sink
  std::vector<Real> row;         // cond_row, by RowField
};

// `read_value(i)` gives size_v elements of keys[i] and is called for visible keys only. Rules for
// NaN and infinities, in this order:
//   a logit or the sink is NaN, or a logit is +inf: out and lse are NaN
//   a logit of -inf hides its key; no key visible: out 0, lse the sink, -inf without
//   sink +inf: out 0, lse +inf; sink -inf: no sink
RowState state_of_row(std::vector<ScoredKey> keys, std::optional<double> sink,
                      const QuerySize& query, std::int64_t size_v,
                      const std::function<Elements(std::size_t i)>& read_value, int bits);

}  // namespace attn::exact
