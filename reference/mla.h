// Multi-head latent attention, absorbed and expanded, dense and sparse.
#pragma once

#include "attn/operation.h"
#include "attn/output.h"

namespace attn::reference {

// Absorbed: the latent row itself is key and, without its rope part, value of every head. Expanded:
// keys and values are materialised with w_uk and w_uv; the form a prefill computes by. Both are the
// same in exact arithmetic when the absorbed query is the expanded one times w_uk.
void mla(const MlaOp& op, const Outputs& outputs);

// Every row sees the listed tokens, as often as they are listed, and no other mask.
void mla_sparse(const MlaSparseOp& op, const Outputs& outputs);

}  // namespace attn::reference
