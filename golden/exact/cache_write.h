// Writes into caches: codes only, in float32 where the formats say so, bit for bit.
#pragma once

#include "attn/operation.h"
#include "attn/output.h"

namespace attn::exact {

void answer(const CacheWriteOp& op, const Outputs& outputs);
void answer(const MlaCacheWriteOp& op, const Outputs& outputs);

}  // namespace attn::exact
