// A key's score from its query: dot product, scale, soft cap.
#pragma once

#include "golden/exact/elements.h"
#include "golden/exact/row_state.h"

namespace attn::exact {

QuerySize size_of_query(const Elements& query, const Real& scale);

// cap * tanh(scale * q.k / cap), without tanh when cap is 0; no biases yet.
ScoredKey score_key(const Elements& query, const Elements& key, const Real& scale, double cap,
                    std::int64_t place);

}  // namespace attn::exact
