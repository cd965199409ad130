// What automatic selection tries on CUDA and on ROCm, best first: a second writing.
#pragma once

#include <string_view>
#include <vector>

#include "attn/selector.h"

namespace attn::property_tests {

using Names = std::vector<std::string_view>;

Names written_cuda_priorities(DeviceCapability capability, const SelectionRequest& request);
Names written_rocm_priorities(const SelectorEnvironment& environment,
                              const AttentionSelectorConfig& config);

}  // namespace attn::property_tests
