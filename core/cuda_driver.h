// The CUDA driver, looked for when it is asked for: nothing links against it.
#pragma once

#include <optional>
#include <string>

#include "attn/selector_environment.h"

namespace attn {

inline constexpr const char* kCudaDriver = "libcuda.so.1";

struct CudaDevice {
  std::optional<DeviceCapability> capability;  // none = there is no device to use
  std::string reason;                          // why there is none: "no CUDA driver", ...
};

// Device 0 of the driver in the shared library `driver`.
CudaDevice first_cuda_device(const std::string& driver);

}  // namespace attn
