// What selection remembers: the cache of answers, and that nothing else is kept between calls or
// threads.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "attn/layer_request.h"
#include "property_tests/selector_property.h"

namespace attn::property_tests {
namespace {

using Run = std::optional<std::string>;

std::string key_of(const LayerRequest& asked) {
  AttentionSelectorConfig config = asked.request.config;
  config.attn_type.plain = false;  // equal to the member
  return fmt::format("{} {} {} {}", asked.request.backend.value_or("-"), repr(config),
                     asked.request.num_heads.value_or(-1), asked.run_kv_cache_dtype.value_or("-"));
}

// Each request of the draw, and each with one thing changed.
std::vector<LayerRequest> neighbours(const CaseDraw& draw) {
  std::vector<LayerRequest> all;
  for (const SelectionRequest& request : requests_on_the_way(draw)) {
    for (const Run& run : {Run("auto"), Run("fp8"), Run()}) all.push_back({request, run});
  }
  for (int field = 0; field < num_request_fields(); ++field) {
    CaseDraw changed = draw;
    changed.departures.push_back({field, draw.common + static_cast<int>(draw.departures.size())});
    all.push_back({make_case(changed).request, "auto"});
  }
  return all;
}

TEST(SelectionCache, RemembersSuccessesByRequestAndRunOnly) {
  for_all_cases([](const CaseDraw& draw) {
    const SelectionCase one = make_case(draw);
    const BackendSelector first(one.facts, registry_of(one));
    const SelectionCase other = make_case({(draw.common + 1) % num_common_cases(), {}});
    const BackendSelector second(other.facts, registry_of(other));
    std::map<std::string, Selection> known;
    SelectionCache cache;
    const std::vector<LayerRequest> asked = neighbours(draw);
    for (std::size_t i = 0; i < 2 * asked.size(); ++i) {
      const LayerRequest& layer = asked[i % asked.size()];
      const BackendSelector& selector = i % 7 == 6 ? second : first;
      const auto found = known.find(key_of(layer));
      const Selection expected =
          found != known.end() ? found->second : selector.select(layer.request);
      if (!expected.error) known.emplace(key_of(layer), expected);
      expect_none(key_of(layer), difference(expected, cache.select(selector, layer)));
      expect_that(cache.size() == known.size(), "another number of answers");
    }
    cache.clear();
    expect_that(cache.size() == 0, "answers after clear");
  });
}

constexpr std::size_t kThreads = 8;

// One draw in sixteen: the others only cost time.
TEST(Selection, FromManyThreadsGivesTheSameAnswers) {
  int drawn = 0;
  for_all_cases([&drawn](const CaseDraw& draw) {
    if (drawn++ % 16 != 0) return;
    const SelectionCase one = make_case(draw);
    const BackendSelector selector(one.facts, registry_of(one));
    std::vector<LayerRequest> asked = neighbours(draw);
    std::vector<Selection> expected;
    for (LayerRequest& layer : asked) {
      layer.request.config.attn_type.plain = false;  // equal requests get equal log lines
      expected.push_back(selector.select(layer.request));
    }
    SelectionCache cache;
    std::vector<std::string> wrong(kThreads);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = 0; i < asked.size(); ++i) {
          const std::size_t at = (i * (2 * t + 1) + t) % asked.size();  // in its own order
          wrong[t] += difference(expected[at], selector.select(asked[at].request));
          wrong[t] += difference(expected[at], cache.select(selector, asked[at]));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& difference_of_one : wrong) expect_none("threads", difference_of_one);
  });
}

}  // namespace
}  // namespace attn::property_tests
