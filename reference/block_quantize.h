// Codes under a scale of their own for a block of values: NVFP4, as caches and outputs store it,
// and groups of fp8, as outputs do. Quotients and products are float32, each step rounded; then one
// rounding to the code, to nearest even. What kernels dispute: whether the block scale of NVFP4
// rounds half up (vLLM's Triton writer) or to even (the hardware, here), in which order its three
// factors are multiplied, which rule gives the scale of an fp8 group; reciprocals in place of
// divisions move a code by one now and then. So no case holds such codes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace attn::reference {

// Element = code * scale / inverse_global.
struct Nvfp4Block {
  std::uint8_t scale = 0;                // f8_e4m3fn
  std::array<std::uint8_t, 16> codes{};  // f4_e2m1, one a byte
};

// scale = e4m3(inverse_global * largest |x| / 6), code = e2m1(x * inverse_global / scale), all
// codes 0 under a scale of 0. inverse_global is 1 / global scale of a cache, the SFScale of an
// output; positive and finite, else Error. A block that holds a NaN gets the scale NaN: e2m1 has no
// code for it. Infinities saturate.
Nvfp4Block quantize_nvfp4(std::span<const float, 16> x, float inverse_global);

// Element = code * scale.
struct Fp8Group {
  float scale = 0.0f;
  std::vector<std::uint8_t> codes;  // f8_e4m3fn
};

// scale = max(largest finite |x| / 448, 2^-126). NaN stays NaN, alone in its group; infinities
// saturate.
Fp8Group quantize_fp8_group(std::span<const float> x);

}  // namespace attn::reference
