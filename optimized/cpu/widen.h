// Stored codes to float32, a row at a time.
#pragma once

#include <cstdint>

#include "attn/dtype.h"

namespace attn::cpu {

// The exact values of `n` units of `type` that lie `stride_bytes` apart, any alignment. `type` is
// one whose every value is a float32 and that holds one element a unit; else throws Error.
void widen(DType type, const std::byte* codes, std::int64_t stride_bytes, std::int64_t n,
           float* values);

// Value of every code of an 8-bit type; also of kF4E2M1 (its low nibble counts).
const float* code_values(DType type);

}  // namespace attn::cpu
