#include "attn/random.h"

#include <fmt/core.h>

#include <cmath>
#include <numeric>
#include <utility>

#include "attn/error.h"

namespace attn {

Words philox4x32_10(const Words& counter, const std::array<std::uint32_t, 2>& key) {
  Words c = counter;
  std::uint32_t k0 = key[0];
  std::uint32_t k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t q = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(q >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(q),
         static_cast<std::uint32_t>(p >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

std::uint64_t random_index(std::int64_t request, std::int64_t position, std::int64_t head,
                           std::int64_t dim) {
  const auto bounded = [](const char* what, std::int64_t value, int width) {
    if (value < 0 || value >= std::int64_t{1} << width) {
      throw Error(
          fmt::format("{} {} of a random element is outside [0, 2^{})", what, value, width));
    }
    return static_cast<std::uint64_t>(value);
  };
  const std::uint64_t t = static_cast<std::uint64_t>(position) & ((std::uint64_t{1} << 26) - 1);
  return (bounded("request", request, 14) << 50) + (t << 24) + (bounded("head", head, 12) << 12) +
         bounded("dim", dim, 12);
}

Words random_words(std::uint64_t seed, std::uint64_t index, RandomTensor tensor,
                   std::uint32_t family) {
  return philox4x32_10({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                        static_cast<std::uint32_t>(tensor), family},
                       {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t i) {
  const Words w = random_words(seed, i, RandomTensor::kConfiguration, 0);
  return w[0] + (std::uint64_t{w[1]} << 32);
}

std::uint32_t below(const Words& w, std::uint32_t n) {
  return static_cast<std::uint32_t>((std::uint64_t{w[0]} * n) >> 32);
}

double uniform(const Words& w, DType type) {
  int b = 0;
  switch (type) {
    case DType::kF64:
    case DType::kF32:
      b = 23;
      break;
    case DType::kF16:
      b = 11;
      break;
    case DType::kBF16:
      b = 8;
      break;
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
      b = 4;
      break;
    case DType::kF8E5M2:
      b = 3;
      break;
    default:
      throw Error(fmt::format("no uniform map for {}", name(type)));
  }
  const std::int64_t n = static_cast<std::int64_t>(w[0] >> (31 - b)) - (std::int64_t{1} << b);
  return std::ldexp(static_cast<double>(n), -b);
}

double bell(const Words& w) {
  std::int64_t s = 0;
  for (const std::uint32_t word : w) {
    s += (word & 1023) + ((word >> 10) & 1023) + ((word >> 20) & 1023);
  }
  const std::int64_t low = 64 * (w[0] >> 30) + 16 * (w[1] >> 30) + 4 * (w[2] >> 30) + (w[3] >> 30);
  return std::ldexp(static_cast<double>(512 * (s - 6138) + 2 * low - 255), -19);
}

int small_integer(const Words& w) { return static_cast<int>(w[1] >> 28) - 8; }

double random_scale(const Words& w) {
  return std::ldexp(static_cast<double>(128 + (w[0] >> 25)), static_cast<int>(w[1] >> 30) - 9);
}

std::uint8_t random_block_scale(const Words& w) {
  return static_cast<std::uint8_t>(0x30 + (w[0] >> 28));
}

bool random_mask_bit(const Words& w) { return (w[0] >> 30) != 0; }

std::vector<std::int32_t> random_permutation(std::uint64_t seed, std::int32_t n,
                                             RandomTensor tensor, std::uint32_t family) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (std::int32_t j = n - 1; j >= 1; --j) {
    const Words w = random_words(seed, static_cast<std::uint64_t>(j), tensor, family);
    const std::uint32_t k = below(w, static_cast<std::uint32_t>(j) + 1);
    std::swap(order[static_cast<std::size_t>(j)], order[k]);
  }
  return order;
}

}  // namespace attn
