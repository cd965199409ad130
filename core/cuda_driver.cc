#include "core/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <utility>

namespace attn {
namespace {

// From cuda.h of the driver interface: CUresult, CUdevice and CUdevice_attribute are ints.
constexpr int kSuccess = 0;
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;
using Init = int (*)(unsigned flags);
using DeviceGet = int (*)(int* device, int ordinal);
using DeviceGetAttribute = int (*)(int* value, int attribute, int device);

struct EntryPoints {
  Init init = nullptr;
  DeviceGet device_get = nullptr;
  DeviceGetAttribute attribute = nullptr;
};

CudaDevice none(std::string reason) { return {std::nullopt, std::move(reason)}; }

// Notes the first symbol that is missing.
template <class Function>
void find(void* library, const char* symbol, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  if (function == nullptr && missing.empty()) missing = symbol;
}

CudaDevice first_device(const EntryPoints& driver) {
  if (const int result = driver.init(0); result != kSuccess) {
    return none(fmt::format("the CUDA driver does not start: cuInit answers {}", result));
  }
  int device = 0;
  if (driver.device_get(&device, 0) != kSuccess) return none("no CUDA device");
  DeviceCapability capability;
  for (const auto& [attribute, value] : {std::pair(kComputeCapabilityMajor, &capability.major),
                                         std::pair(kComputeCapabilityMinor, &capability.minor)}) {
    if (const int result = driver.attribute(value, attribute, device); result != kSuccess) {
      return none(
          fmt::format("cuDeviceGetAttribute answers {} to attribute {}", result, attribute));
    }
  }
  return {capability, ""};
}

}  // namespace

CudaDevice first_cuda_device(const std::string& driver) {
  // Stays open: a driver that has started keeps threads and must not be unloaded.
  void* const library = dlopen(driver.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return none("no CUDA driver");
  EntryPoints entry;
  std::string missing;
  find(library, "cuInit", entry.init, missing);
  find(library, "cuDeviceGet", entry.device_get, missing);
  find(library, "cuDeviceGetAttribute", entry.attribute, missing);
  if (!missing.empty()) return none(fmt::format("the CUDA driver has no {}", missing));
  return first_device(entry);
}

}  // namespace attn
