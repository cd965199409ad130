// Masks, biases and sinks of a setup.
#pragma once

#include "golden/questions/setup.h"

namespace attn::questions {

// Reads sizes and lengths from `setup`; tensors go to `memory`.
MaskSpec draw_mask(const AttentionSetup& setup, TensorStore& memory);
BiasSpec draw_bias(const AttentionSetup& setup, TensorStore& memory);
TensorView draw_sinks(const AttentionSetup& setup, TensorStore& memory);

}  // namespace attn::questions
