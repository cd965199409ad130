// From what was found on a machine to the facts of a selection.
#pragma once

#include "attn/environment.h"
#include "core/cpu_features.h"
#include "core/cuda_driver.h"

namespace attn {

SelectorFacts environment_of(const CudaDevice& device, const CpuFeatures& cpu);

}  // namespace attn
