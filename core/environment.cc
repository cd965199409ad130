#include "core/environment.h"

namespace attn {

SelectorFacts environment_of(const CudaDevice& device, const CpuFeatures& cpu) {
  SelectorFacts facts;
  facts.platform = device.capability ? Platform::kCuda : Platform::kCpu;
  facts.capability = device.capability;
  facts.environment.cpu_arch = cpu.arch;
  facts.environment.cpu_amx_tile = cpu.amx_tile;
  facts.environment.cpu_avx512 = cpu.avx512;
  return facts;
}

SelectorFacts detect_environment() {
  return environment_of(first_cuda_device(kCudaDriver), detect_cpu_features());
}

}  // namespace attn
