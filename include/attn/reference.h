// The truth: Eigen, double, gather then reduce. Slow and meant to be read.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "attn/backend.h"

namespace attn {

// Backend `REFERENCE`. Answers out and lse in F64, honours every exec.
std::unique_ptr<Backend> make_reference_backend();

// Keys [begin, end).
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  bool operator==(const KeyRange&) const = default;
};

// The keys that local row `row` of a request sees with query head `head`: base mask, attn_mask and
// biases of -inf, by the reference's predicate; maximal ranges, ascending. Data is not looked at (a
// score that is -inf by itself also hides its key). Throws Error when request, head or row are out
// of range.
std::vector<KeyRange> visible_ranges(const AttentionOp& op, std::int64_t request, std::int64_t head,
                                     std::int64_t row);

}  // namespace attn
