// The caches of a case: layouts and encodings.
#pragma once

#include "attn/kv_cache.h"
#include "golden/case_inputs.h"

namespace attn::golden {

// How kv_cache_dtype makes numbers of codes.
KvEncoding encoding_of(CacheDType type);

// Keys and values of attention and differential in the layout that attribute kv_layout says. Throws
// Error for inputs that do not fit the layout, block_size or kv_cache_dtype; shapes against each
// other are left to validate().
KvCacheView take_kv(CaseInputs& inputs);

// key_cache and value_cache of cache_write with their scales: no block table.
KvCacheView take_written_cache(CaseInputs& inputs);

}  // namespace attn::golden
