// Rows of a latent cache (multi-head latent attention): latent, then rope.
#pragma once

#include <cstdint>

#include "attn/operation.h"
#include "golden/exact/elements.h"

namespace attn::exact {

struct LatentRow {
  Elements latent;  // [L]
  Elements rope;    // [R]
};

// Decoded, times k_scale or the scales inside the row.
LatentRow read_latent_row(const MlaOp& op, std::int64_t block, std::int64_t slot, int bits);

// What the scores of `head` are made with: absorbed latent ‖ rope; expanded latent * w_uk ‖ rope.
Elements latent_key(const MlaOp& op, const LatentRow& row, std::int64_t head, int bits);

// Absorbed the latent itself, expanded latent * w_uv.
Elements latent_value(const MlaOp& op, const LatentRow& row, std::int64_t head, int bits);

}  // namespace attn::exact
