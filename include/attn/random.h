// Random data as a pure function of (seed, family, tensor, coordinates): the same bits in every
// language, for any number of threads, in any order of drawing. Integer operations only.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "attn/dtype.h"

namespace attn {

using Words = std::array<std::uint32_t, 4>;

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC11).
Words philox4x32_10(const Words& counter, const std::array<std::uint32_t, 2>& key);

// Which tensor an element belongs to: part of the counter, so tensors never share values.
enum class RandomTensor : std::uint32_t {
  kConfiguration = 0,
  kQuery = 1,
  kKey = 2,
  kValue = 3,
  kSinks = 4,
  kAttnBias = 5,
  kAttnMask = 6,
  kQqBias = 7,
  kWUk = 8,
  kWUv = 9,
  kDiffNormWeight = 10,
  kQScale = 11,
  kKScale = 12,
  kVScale = 13,
  kKBlockScale = 14,
  kVBlockScale = 15,
  kOutputScale = 16,
  kWeights = 17,
  kOutParts = 18,
  kLseParts = 19,
  kBlockTable = 20,
  kTopkIndices = 21,
  kSlotMapping = 22,
  kNeedle = 23,
};

// Coordinates, not a position in memory: request, position (token or key), head, dim. Paged and
// contiguous caches therefore hold the same keys, and a smaller shape keeps the values that remain.
// request < 2^14, position modulo 2^26, head < 2^12, dim < 2^12.
std::uint64_t random_index(std::int64_t request, std::int64_t position, std::int64_t head,
                           std::int64_t dim);

// The four words of one element; they are all the randomness it may use.
Words random_words(std::uint64_t seed, std::uint64_t index, RandomTensor tensor,
                   std::uint32_t family);

// Seed of the i-th case derived from a campaign's seed.
std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t i);

// Maps from words to values. A published map never changes.
std::uint32_t below(const Words& w, std::uint32_t n);  // floor(w0 * n / 2^32)
double uniform(const Words& w, DType type);            // [-1, 1), exact in `type`
double bell(const Words& w);                           // about N(0,1), |x| < 6, never 0
int small_integer(const Words& w);                     // [-8, 7]
double random_scale(const Words& w);                   // 0.25 ... 3.98, 8 significant bits
std::uint8_t random_block_scale(const Words& w);       // e4m3fn code, 0.5 ... 1.875
bool random_mask_bit(const Words& w);                  // true (visible) with probability 3/4

// Fisher-Yates over `below` of consecutive indices.
std::vector<std::int32_t> random_permutation(std::uint64_t seed, std::int32_t n,
                                             RandomTensor tensor, std::uint32_t family);

}  // namespace attn
