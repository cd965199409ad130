#include "optimized/cpu/tile_kernel.h"

#include <algorithm>
#include <bit>

namespace attn::cpu {

// The arrays of kKernelLanes sums stay in vector registers: the loops over j have a constant count
// and no dependence between iterations.

void dot_tile(const float* query, std::int64_t head_size, const float* keys, float* dots) {
  for (std::int64_t lane = 0; lane < kTileKeys; lane += kKernelLanes) {
    float total[kKernelLanes] = {};
    for (std::int64_t first = 0; first < head_size; first += kDotBlock) {
      const std::int64_t end = std::min(first + kDotBlock, head_size);
      float block[kKernelLanes] = {};
      for (std::int64_t d = first; d < end; ++d) {
        const float q = query[d];
        const float* key = keys + d * kTileKeys + lane;
        for (std::int64_t j = 0; j < kKernelLanes; ++j) block[j] += q * key[j];
      }
      for (std::int64_t j = 0; j < kKernelLanes; ++j) total[j] += block[j];
    }
    for (std::int64_t j = 0; j < kKernelLanes; ++j) dots[lane + j] = total[j];
  }
}

void weigh_values(const float* weights, std::uint64_t keys, const float* values,
                  std::int64_t stride, float* sum) {
  for (std::int64_t d = 0; d < stride; d += kKernelLanes) {
    float total[kKernelLanes] = {};
    for (std::uint64_t left = keys; left != 0; left &= left - 1) {
      const int row = std::countr_zero(left);
      const float weight = weights[row];
      const float* value = values + row * stride + d;
      for (std::int64_t j = 0; j < kKernelLanes; ++j) total[j] += weight * value[j];
    }
    for (std::int64_t j = 0; j < kKernelLanes; ++j) sum[d + j] = total[j];
  }
}

}  // namespace attn::cpu
