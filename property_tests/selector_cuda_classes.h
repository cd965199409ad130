// The backends that CUDA selects most, written out from what vLLM's documentation of them says
// rather than from the selector's rows.
#pragma once

#include <memory>
#include <string_view>

#include "property_tests/selector_class.h"

namespace attn::property_tests {

// FLASH_ATTN, FLASHINFER, TRITON_ATTN, FLEX_ATTENTION, FLASHMLA, CUTLASS_MLA, and the composites
// TRITON_FLASHINFER and TRITON_FLASH_ATTN; nullptr for others.
// `facts` are of a CUDA device and must outlive the class.
std::unique_ptr<BackendClass> written_class(std::string_view member, const SelectorFacts& facts);

}  // namespace attn::property_tests
