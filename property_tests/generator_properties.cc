// What the other properties stand on: the configs and the problems made from them.
#include <fmt/core.h>

#include <map>
#include <set>

#include "property_tests/definition.h"
#include "property_tests/draw_problem.h"
#include "property_tests/problem_data.h"
#include "property_tests/property.h"

namespace attn::property_tests {
namespace {

ConfigSpace everything() {
  ConfigSpace space;
  space.exec = true;
  space.output_codes = true;
  space.families = {Family::kUniform,     Family::kBell,          Family::kNegativeLogits,
                    Family::kLargeLogits, Family::kExactLane,     Family::kMembership,
                    Family::kAllCodes,    Family::kConstantValues};
  return space;
}

// Draws of one generator, sizes cycling as RapidCheck does it.
std::vector<ProblemConfig> many_configs(int count) {
  const rc::Gen<ProblemConfig> configs = problem_configs(everything());
  rc::Random random(20261129);
  std::vector<ProblemConfig> drawn;
  for (int i = 0; i < count; ++i) drawn.push_back(configs(random.split(), i % 101).value());
  return drawn;
}

TEST(Generators, ConfigsAreNormalisedAndTheirProblemsValid) {
  for (const ProblemConfig& config : many_configs(2000)) {
    ASSERT_EQ(config, normalised(config));
    const ProblemData data(draw_problem(config), config.memory);
    ASSERT_NO_THROW(data.problem()) << config;
  }
}

TEST(Generators, EveryMaskFormatFamilyAndCacheFormIsDrawn) {
  std::set<MaskKind> masks;
  std::set<KvFormat> formats;
  std::set<Family> families;
  std::set<CacheForm> caches;
  std::set<Lengths> lengths;
  for (const ProblemConfig& config : many_configs(2000)) {
    masks.insert(config.mask);
    formats.insert(config.kv);
    families.insert(config.family);
    caches.insert(config.memory.cache);
    lengths.insert(config.lengths);
  }
  EXPECT_EQ(masks.size(), everything().masks.size());
  EXPECT_EQ(formats.size(), everything().kv.size());
  EXPECT_EQ(families.size(), everything().families.size());
  EXPECT_EQ(caches.size(), 5u);
  EXPECT_EQ(lengths.size(), 3u);
}

// A mask that hides nothing, or a batch that sees nothing, would let faults pass.
TEST(Generators, MasksHideSomeKeysAndShowSome) {
  std::map<MaskKind, int> cases;
  std::map<MaskKind, int> telling;
  for (const ProblemConfig& config : many_configs(2000)) {
    if (config.mask == MaskKind::kNone) continue;
    const LogicalProblem problem = draw_problem(config);
    bool shows = false;
    bool hides = false;
    for (std::int64_t r = 0; r < config.num_reqs; ++r) {
      for (std::int64_t row = 0; row < problem.request(r).query_len(); ++row) {
        const auto seen = static_cast<std::int64_t>(visible_keys(problem, r, 0, row).size());
        shows = shows || seen > 0;
        hides = hides || seen < problem.request(r).seq_len();
      }
    }
    ++cases[config.mask];
    if (shows && hides) ++telling[config.mask];
  }
  for (const auto& [mask, count] : cases) {
    EXPECT_GT(3 * telling[mask], count) << name(mask) << ": " << telling[mask] << " of " << count;
  }
}

TEST(Generators, SmallestShrinkIsOneRowOfOneKey) {
  const rc::Gen<ProblemConfig> configs = problem_configs(everything());
  rc::Random random(1);
  rc::Shrinkable<ProblemConfig> shrinkable = configs(random, 100);
  const std::uint64_t seed = shrinkable.value().seed;
  for (auto next = shrinkable.shrinks().next(); next; next = shrinkable.shrinks().next()) {
    shrinkable = *next;
  }
  ProblemConfig smallest;
  smallest.seed = seed;
  smallest.memory.block_order = shrinkable.value().memory.block_order;
  EXPECT_EQ(shrinkable.value(), smallest);
}

TEST(Generators, ValuesBelongToCoordinatesNotToSizes) {
  for (const ProblemConfig& config : many_configs(300)) {
    if (config.lengths != Lengths::kEqual || config.family == Family::kMembership) continue;
    ProblemConfig larger = config;
    larger.num_reqs += 1;
    larger.num_kv_heads += 1;
    larger.context_len += 1;
    const LogicalProblem small = draw_problem(config);
    const LogicalProblem large = draw_problem(larger);
    for (std::int64_t k = 0; k < small.request(0).seq_len(); ++k) {
      ASSERT_EQ(small.request(0).key.value(k, 0, 0), large.request(0).key.value(k, 0, 0)) << config;
    }
  }
}

}  // namespace
}  // namespace attn::property_tests
