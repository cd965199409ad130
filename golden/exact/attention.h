// Operation attention, and the part of it that differential shares.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/operation.h"
#include "attn/output.h"
#include "golden/exact/mask.h"
#include "golden/exact/row_state.h"

namespace attn::exact {

int answer(const AttentionOp& op, const Outputs& outputs);

// A query head and the KV head it reads keys from.
struct HeadPair {
  std::int64_t head = 0;
  std::int64_t kv_head = 0;
};

struct ScoredRow {
  std::vector<ScoredKey> keys;  // those that mask and biases leave; K of others is not read
  QuerySize query;
};

ScoredRow score_row(const AttentionOp& op, const RowPlace& row, const HeadPair& heads, int bits);

}  // namespace attn::exact
