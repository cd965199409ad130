// Validations and selections with all reasons as data, on one thread.
#include <benchmark/benchmark.h>

#include <vector>

#include "attn/backend_check.h"
#include "selector/vllm_backends.h"

namespace attn {
namespace {

SelectorFacts hopper() { return {Platform::kCuda, DeviceCapability{9, 0}, {}}; }

std::vector<BackendCheck> all_checks(const SelectorFacts& facts) {
  std::vector<BackendCheck> checks;
  for (const auto rows : {dense_backends(), mla_backends()}) {
    for (const BackendRow& row : rows) checks.emplace_back(row.describe(facts));
  }
  return checks;
}

// Requests as layers make them: sizes that fit and sizes that do not.
std::vector<AttentionSelectorConfig> requests() {
  std::vector<AttentionSelectorConfig> all;
  for (const int head_size : {64, 128, 256, 512, 576}) {
    for (const int block_size : {0, 16, 64}) {
      for (const bool use_mla : {false, true}) {
        AttentionSelectorConfig config;
        config.head_size = head_size;
        config.kv_cache_dtype = CacheDType::kAuto;
        if (block_size != 0) config.block_size = block_size;
        config.use_mla = use_mla;
        all.push_back(config);
      }
    }
  }
  return all;
}

void single_validations(benchmark::State& state) {
  const SelectorFacts facts = hopper();
  const std::vector<BackendCheck> checks = all_checks(facts);
  const std::vector<AttentionSelectorConfig> configs = requests();
  for (auto _ : state) {
    for (const BackendCheck& check : checks) {
      for (const AttentionSelectorConfig& config : configs) {
        benchmark::DoNotOptimize(check.validate(Requirements(config), facts));
      }
    }
  }
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(checks.size() * configs.size()));
}
BENCHMARK(single_validations);

void selections_among_32(benchmark::State& state) {
  constexpr std::size_t kBackends = 32;
  const SelectorFacts facts = hopper();
  const std::vector<BackendCheck> checks = all_checks(facts);
  const std::vector<AttentionSelectorConfig> configs = requests();
  std::vector<Reasons> reasons(kBackends);
  for (auto _ : state) {
    for (const AttentionSelectorConfig& config : configs) {
      const Requirements asked(config);
      for (std::size_t index = 0; index < kBackends; ++index) {
        reasons[index] = checks[index].validate(asked, facts);
      }
      benchmark::DoNotOptimize(reasons.data());
      benchmark::ClobberMemory();
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(configs.size()));
}
BENCHMARK(selections_among_32);

}  // namespace
}  // namespace attn

BENCHMARK_MAIN();
