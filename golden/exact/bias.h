// What is added to a score: ALiBi, attn_bias and qq_bias.
#pragma once

#include "attn/mask.h"
#include "golden/exact/mask.h"
#include "golden/exact/real.h"

namespace attn::exact {

struct AddedBias {
  Real sum;
  Real size;           // sum of the terms' magnitudes
  bool hides = false;  // a term is -inf: the key is masked whatever its score is
};

AddedBias added_bias(const BiasSpec& bias, const RowPlace& row, std::int64_t head, std::int64_t k,
                     int bits);

}  // namespace attn::exact
