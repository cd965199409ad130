// What lies in memory that nothing addresses.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/host_tensor.h"
#include "golden/questions/draw.h"

namespace attn::questions {

enum class Fill : std::uint8_t { kZero, kNaN, kPlusInfinity, kMinusInfinity, kLargest };

// Entry of a block table that no request has: reading it faults.
inline constexpr std::int32_t kUnusedBlock = 2147480000;

// The code of the fill; the nearest thing where the type has no NaN or infinity.
std::uint64_t fill_code(Fill fill, DType type);
HostTensor filled(DType type, std::vector<std::int64_t> shape, Fill fill);

// Family kPoisoned: one of the four that are not zero, by below(4) of configuration index 2^32.
Fill drawn_fill(const Source& source);

}  // namespace attn::questions
