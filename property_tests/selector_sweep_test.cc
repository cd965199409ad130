// No point of the lattices tells the selector from its second writing. ATTN_SELECTOR_SWEEP=full
// takes the large lattice of reasons.
#include "property_tests/selector_sweep.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "attn/selector.h"
#include "property_tests/selector_choice.h"
#include "property_tests/selector_priorities.h"

namespace attn::property_tests {
namespace {

bool full() {
  const char* text = std::getenv("ATTN_SELECTOR_SWEEP");
  return text != nullptr && std::string_view(text) == "full";
}

void expect_no_difference(const Sweep& sweep, std::int64_t least_points) {
  const auto start = std::chrono::steady_clock::now();
  const SweepResult result = run_sweep(sweep);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(result.difference, "");
  EXPECT_GE(result.points, least_points);
  std::cout << fmt::format("{} points in {:.1f} s\n", result.points, time.count());
}

TEST(SelectorSweep, ReasonsOfEveryValueAreTheSecondWritings) {
  expect_no_difference(value_sweep(full()), full() ? 100'000'000 : 1'000'000);
}

TEST(SelectorSweep, ReasonsOfEverySetOfWishesAreTheSecondWritings) {
  expect_no_difference(wish_sweep(full()), full() ? 100'000'000 : 1'000'000);
}

// Everything that decides which list is taken.
TEST(SelectorSweep, CudaPrioritiesAreTheSecondWritings) {
  std::int64_t points = 0;
  for (unsigned set = 0; set < 8 * 5 * 4 * 4 * 14; ++set) {
    SelectionRequest request;
    request.config.use_mla = (set & 1) != 0;
    request.config.use_non_causal = (set & 2) != 0;
    request.config.use_mm_prefix = (set & 4) != 0;
    constexpr std::optional<int> kHeads[] = {std::nullopt, 1, 16, 17, 128};
    request.num_heads = kHeads[set / 8 % 5];
    constexpr std::optional<CacheDType> kKv[] = {std::nullopt, CacheDType::kAuto,
                                                 CacheDType::kBFloat16, CacheDType::kFp8};
    request.config.kv_cache_dtype = kKv[set / 40 % 4];
    constexpr int kHeadSizes[] = {128, 511, 512, 576};
    request.config.head_size = kHeadSizes[set / 160 % 4];
    const DeviceCapability capability = {static_cast<int>(set / 640), 0};
    const auto ours = cuda_priorities({.use_mla = request.config.use_mla,
                                       .capability = capability,
                                       .num_heads = request.num_heads,
                                       .kv_cache_dtype = request.config.kv_cache_dtype,
                                       .use_non_causal = request.config.use_non_causal,
                                       .head_size = request.config.head_size,
                                       .use_mm_prefix = request.config.use_mm_prefix});
    ASSERT_EQ(Names(ours.begin(), ours.end()), written_cuda_priorities(capability, request))
        << capability.major << " " << repr(request.config);
    ++points;
  }
  std::cout << fmt::format("{} points\n", points);
}

// Platforms that choose by rules rather than by validating a list.
TEST(SelectorSweep, ChoicesOnXpuAndCpuAreTheSecondWritings) {
  SelectorFacts with_amx = {Platform::kCpu, std::nullopt, {}};
  with_amx.environment.cpu_amx_tile = true;
  std::int64_t points = 0;
  for (const SelectorFacts& facts : {SelectorFacts{Platform::kXpu, std::nullopt, {}},
                                     SelectorFacts{Platform::kCpu, std::nullopt, {}}, with_amx}) {
    const BackendSelector selector(facts, BackendRegistry(RegistryKind::kAttention));
    const WrittenSelector expected(facts, {});
    for (unsigned set = 0; set < 16 * 10 * 3 * 3 * (kNumCacheDTypes + 1); ++set) {
      SelectionRequest request;
      request.config.use_mla = (set & 1) != 0;
      request.config.use_sparse = (set & 2) != 0;
      request.config.use_mm_prefix = (set & 4) != 0;
      request.config.use_batch_invariant = (set & 8) != 0;
      constexpr const char* kAsked[] = {"",           "FLASH_ATTN",     "TRITON_ATTN",
                                        "TRITON_MLA", "FLASH_ATTN_MLA", "TRITON_FLASH_ATTN",
                                        "CPU_ATTN",   "CPU_MLA",        "AMX_MLA",
                                        "FLASHINFER"};
      if (set / 16 % 10 != 0) request.backend = kAsked[set / 16 % 10];
      constexpr DType kDTypes[] = {DType::kBF16, DType::kF16, DType::kF32};
      request.config.dtype = kDTypes[set / 160 % 3];
      constexpr int kHeadSizes[] = {128, 256, 576};
      request.config.head_size = kHeadSizes[set / 480 % 3];
      const auto kv = set / 1440;
      if (kv != kNumCacheDTypes) request.config.kv_cache_dtype = static_cast<CacheDType>(kv);
      ASSERT_EQ(difference(expected.select(request), selector.select(request)), "")
          << name(facts.platform) << " asked for " << request.backend.value_or("nothing") << ", "
          << repr(request.config);
      ++points;
    }
  }
  std::cout << fmt::format("{} points\n", points);
}

}  // namespace
}  // namespace attn::property_tests
