// Indices into the fields of a batch, and parts of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attn/metadata.h"

namespace attn {

// Of a row or token.
inline std::size_t index_of(std::int32_t index) { return static_cast<std::size_t>(index); }

template <class T>
std::vector<T> first_of(const std::vector<T>& values, std::int64_t count) {
  return {values.begin(), values.begin() + count};
}

// What belongs to rows [first, past) alone, image ranges with re-indexed rows: every field that has
// one entry a row, and `causal`. No field of tokens, no maximum.
CommonAttentionMetadata sliced_rows(const CommonAttentionMetadata& batch, std::int32_t first,
                                    std::int32_t past);

}  // namespace attn
