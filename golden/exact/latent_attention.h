// Multi-head latent attention, dense (mla) and over lists of tokens (mla_sparse).
#pragma once

#include "attn/operation.h"
#include "attn/output.h"

namespace attn::exact {

int answer(const MlaOp& op, const Outputs& outputs);
int answer(const MlaSparseOp& op, const Outputs& outputs);

}  // namespace attn::exact
