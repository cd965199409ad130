// Writing new keys and values into caches: whole caches out, only addressed slots changed.
#pragma once

#include "attn/operation.h"
#include "attn/output.h"

namespace attn::reference {

void cache_write(const CacheWriteOp& op, const Outputs& outputs);
void mla_cache_write(const MlaCacheWriteOp& op, const Outputs& outputs);

}  // namespace attn::reference
