// Puts the keys and values of all requests where a cache form and a block plan say.
#pragma once

#include <vector>

#include "golden/questions/cache_rows.h"
#include "golden/questions/setup.h"

namespace attn::questions {

struct RequestRows {
  CacheRows key;
  CacheRows value;
};

// The cache without its scale tensors [1], [num_kv_heads] and [num_reqs, num_kv_heads]. `plan` is
// not used by CacheForm::kVarlen, `rows` has an entry a request.
KvCacheView place_cache(const AttentionSetup& setup, const BlockPlan& plan,
                        const std::vector<RequestRows>& rows, TensorStore& memory);

}  // namespace attn::questions
