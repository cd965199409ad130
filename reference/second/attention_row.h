// One row of attention with heads chosen freely: attention and differential pair them differently.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/second/row_place.h"
#include "reference/second/row_softmax.h"

namespace attn::second {

struct RowHeads {
  std::int64_t query = 0;            // also of mask, biases and slopes
  std::int64_t key = 0;              // also of q_scale
  std::vector<std::int64_t> values;  // their values one behind the other
};

// The row's keys, all of them; the sink is the caller's.
RowSoftmax attention_row(const AttentionOp& op, const RowPlace& at, const RowHeads& heads);

}  // namespace attn::second
