// Indexer logits: sum over heads of weight * max(q . k, 0), -inf outside a token's range of keys.
#pragma once

#include "attn/operation.h"
#include "attn/output.h"

namespace attn::exact {

int answer(const IndexerOp& op, const Outputs& outputs);

}  // namespace attn::exact
