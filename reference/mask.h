// The mask predicate of the reference, written like its formula (attn/mask.h).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "attn/mask.h"

namespace attn::reference {

// Base mask of one request: everything but attn_mask and biases of -inf, which depend on the head.
class BaseMask {
 public:
  BaseMask(const MaskSpec& mask, std::int64_t request);

  // Whether the row at absolute position q (negative when query_len > seq_len) sees key k in [0,
  // seq_len).
  bool sees(std::int64_t q, std::int64_t k) const;

 private:
  bool within_left(std::int64_t q, std::int64_t k) const;
  bool within_right(std::int64_t q, std::int64_t k) const;
  bool within_chunk(std::int64_t q, std::int64_t k) const;
  bool share_range(std::int64_t q, std::int64_t k) const;

  MaskSpec mask_;
  bool causal_;
  std::int64_t prefix_len_ = 0;                                   // of R-SWA
  std::vector<std::pair<std::int64_t, std::int64_t>> mm_ranges_;  // inclusive, start < end
};

// attn_mask of one (request, head, local row, k); true when there is none.
bool attn_mask_allows(const MaskSpec& mask, std::int64_t request, std::int64_t head,
                      std::int64_t row, std::int64_t k);

}  // namespace attn::reference
