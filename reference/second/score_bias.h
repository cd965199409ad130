// What is added to a score after scale and soft cap.
#pragma once

#include <cstdint>

#include "reference/second/row_place.h"

namespace attn::second {

struct ScoreBias {
  long double sum = 0.0L;
  bool masks = false;  // a term is -inf: the key is absent, whatever its score

  void add(long double term);
};

// ALiBi, attn_bias and qq_bias of one query head and key.
ScoreBias score_bias(const AttentionOp& op, const RowPlace& at, std::int64_t head, std::int64_t k);

// Place of (request, head, row, key) in a tensor [num_reqs|1, num_heads|1, rows|1, keys|1].
struct BroadcastPlace {
  std::int64_t at[4];
};
BroadcastPlace broadcast_place(const TensorView& view, const RowPlace& at, std::int64_t head,
                               std::int64_t k);

}  // namespace attn::second
