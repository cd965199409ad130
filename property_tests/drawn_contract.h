// Random precision contracts: a named one, often with some fields changed.
#pragma once

#include <cstdint>

#include "attn/contract.h"

namespace attn::property_tests {

PrecisionContract draw_contract(std::uint64_t seed);

}  // namespace attn::property_tests
