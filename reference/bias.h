// What is added to a score after the soft cap.
#pragma once

#include <array>
#include <cstdint>

#include "attn/mask.h"

namespace attn::reference {

// One row of one request, as biases see it.
struct RowPosition {
  std::int64_t request = 0;
  std::int64_t row = 0;  // local
  std::int64_t q = 0;    // absolute
  std::int64_t context_len = 0;
};

// ALiBi, attn_bias, qq_bias, to be added in this order; 0 for one that is absent. A term of -inf
// masks the key whatever its score is.
std::array<double, 3> bias_terms(const BiasSpec& bias, const RowPosition& at, std::int64_t head,
                                 std::int64_t k);

bool any_masks(const std::array<double, 3>& terms);

}  // namespace attn::reference
