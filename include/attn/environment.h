// What this machine is, as facts for a selection.
#pragma once

#include <string_view>

#include "attn/selector_environment.h"

namespace attn {

// The facts of SelectorEnvironment that detect_environment() finds out.
inline constexpr std::string_view kDetectedFacts[] = {"cpu_arch", "cpu_amx_tile", "cpu_avx512"};

// Platform cuda with the compute capability of the CUDA driver's first device, or, where the driver
// cannot be loaded, does not start or has no device, platform cpu without a capability; and this
// CPU's kDetectedFacts. ROCm and XPU are not looked for. All else keeps the defaults of
// SelectorEnvironment: it is a matter of the installation (which Python packages and kernels there
// are) or of a run, and nobody can know it from here. The driver is opened at run time; loading and
// starting it takes part of a second.
SelectorFacts detect_environment();

}  // namespace attn
