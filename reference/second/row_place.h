// Where a query row stands.
#pragma once

#include <cstdint>

#include "attn/operation.h"

namespace attn::second {

struct RowPlace {
  std::int64_t request = 0;
  std::int64_t row = 0;      // in its request
  std::int64_t seq_len = 0;  // of its request
  std::int64_t context = 0;  // tokens before row 0; negative when there are more rows than tokens

  std::int64_t position() const { return context + row; }
};

inline RowPlace row_place(const TensorView& query_start_loc, const TensorView& seq_lens,
                          std::int64_t request, std::int64_t row) {
  const std::int64_t query_len =
      int_at(query_start_loc, request + 1) - int_at(query_start_loc, request);
  const std::int64_t seq_len = int_at(seq_lens, request);
  return {request, row, seq_len, seq_len - query_len};
}

}  // namespace attn::second
