// A question of the operation `mla_cache_write` before anything is drawn.
#pragma once

#include "attn/host_tensor.h"
#include "attn/operation.h"
#include "golden/questions/latent_setup.h"

namespace attn::questions {

struct LatentWrite {
  LatentSetup latent = {};
  bool zero_group = false;  // dims 128 ... 255 of token 0 are 0
};

// The operation a setup describes; views look into `memory`. Lengths of the setup do not matter.
MlaCacheWriteOp draw_latent_write(const LatentWrite& write, TensorStore& memory);

}  // namespace attn::questions
