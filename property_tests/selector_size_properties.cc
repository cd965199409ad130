// Block sizes, cache layouts and capabilities: what several backends have in common, and orders.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "attn/block_sizes.h"
#include "attn/cache_layouts.h"
#include "attn/vllm_error.h"
#include "core/composite_description.h"
#include "core/contains.h"
#include "property_tests/selector_property.h"

namespace attn::property_tests {
namespace {

// The departures of a draw are numbers here.
int number(const CaseDraw& draw, std::size_t index) {
  return index < draw.departures.size() ? draw.departures[index].value : 0;
}

BlockSizes drawn_sizes(const CaseDraw& draw, std::size_t first) {
  constexpr std::array kSizes = {16, 1, 24, 32, 48, 64, 80, 128, 256, 8};
  BlockSizes sizes;
  for (int i = 0; i < number(draw, first) % 4; ++i) {
    const auto drawn =
        static_cast<std::size_t>(number(draw, first + 1 + static_cast<std::size_t>(i)));
    sizes.push_back({kSizes[drawn % kSizes.size()], drawn / kSizes.size() % 2 == 0});
  }
  return sizes;
}

// The kernel runs with blocks of exactly this size.
bool takes(const BlockSizes& sizes, int size) {
  return std::any_of(sizes.begin(), sizes.end(), [size](BlockSize entry) {
    return entry.multiples ? size % entry.size == 0 : size == entry.size;
  });
}

constexpr int kLargest = 4096;

TEST(BlockSizes, SupportAndPreferenceAreTheDefinition) {
  for_all_cases([](const CaseDraw& draw) {
    const BlockSizes sizes = drawn_sizes(draw, 0);
    expect_that(supports_block_size(sizes, std::nullopt), "a size that is not given");
    for (int b = 1; b <= 520; ++b) {
      bool any = sizes.empty();
      int smallest = 1 << 30;
      for (const BlockSize entry : sizes) {
        any = any || b % entry.size == 0;
        smallest = std::min(smallest, entry.size);
      }
      expect_that(supports_block_size(sizes, b) == any,
                  fmt::format("{} of {}", b, to_string(sizes)));
      expect_that(preferred_block_size(sizes, b) == (any ? b : smallest),
                  fmt::format("preferred {} of {}", b, to_string(sizes)));
    }
  });
}

TEST(BlockSizes, IntersectionTakesWhatBothTake) {
  for_all_cases([](const CaseDraw& draw) {
    const BlockSizes a = drawn_sizes(draw, 0);
    const BlockSizes b = drawn_sizes(draw, 4);
    const BlockSizes both = intersect_block_sizes(a, b);
    for (int size = 1; size <= kLargest; ++size) {
      expect_that(
          takes(both, size) == (takes(a, size) && takes(b, size)),
          fmt::format("{} in {} of {} and {}", size, to_string(both), to_string(a), to_string(b)));
    }
    for (std::size_t i = 0; i < both.size(); ++i) {
      expect_that(std::find(both.begin(), both.begin() + static_cast<std::ptrdiff_t>(i), both[i]) ==
                      both.begin() + static_cast<std::ptrdiff_t>(i),
                  fmt::format("{} twice", to_string(both[i])));
    }
  });
}

// The order of an intersection: pairs of the first list's entry, then the second's.
TEST(BlockSizes, IntersectionKeepsTheOrderOfItsLists) {
  for_all_cases([](const CaseDraw& draw) {
    const BlockSizes a = drawn_sizes(draw, 0);
    const BlockSizes b = drawn_sizes(draw, 4);
    BlockSizes expected;
    for (const BlockSize outer : a) {
      for (const BlockSize inner : b) {
        const BlockSizes one = intersect_block_sizes(std::array{outer}, std::array{inner});
        for (const BlockSize entry : one) {
          if (!contains(expected, entry)) {
            expected.push_back(entry);
          }
        }
      }
    }
    expect_that(intersect_block_sizes(a, b) == expected, to_string(expected));
  });
}

TEST(BlockSizes, CompositeTakesWantedSizesThatAllChildrenSupport) {
  for_all_cases([](const CaseDraw& draw) {
    std::vector<KernelBlocks> children;
    for (int i = 0; i < 1 + number(draw, 16) % 3; ++i) {
      children.push_back({.sizes = drawn_sizes(draw, 4 * static_cast<std::size_t>(i))});
    }
    const BlockSizes wanted = drawn_sizes(draw, 12);
    BlockSizes expected;
    std::vector<int> sizes;
    for (const BlockSize entry : wanted) {
      sizes.push_back(entry.size);
      const bool all = std::all_of(children.begin(), children.end(), [&](const auto& child) {
        return is_multiple_of_any(child.sizes, entry.size);
      });
      if (all) expected.push_back({entry.size});
    }
    if (wanted.empty()) {
      expected = children[0].sizes;
      for (std::size_t i = 1; i < children.size(); ++i) {
        expected = intersect_block_sizes(expected, children[i].sizes);
      }
    }
    expect_that(composite_block_sizes(children, sizes) == expected, to_string(expected));
  });
}

std::string common_or_error(int manager, const std::vector<NamedBlockSizes>& backends) {
  try {
    return std::to_string(select_common_block_size(manager, backends));
  } catch (const VllmError& error) {
    return fmt::format("{}: {}", error.type(), error.what());
  }
}

TEST(BlockSizes, CommonOneIsTheLargestThatAllTake) {
  for_all_cases([](const CaseDraw& draw) {
    constexpr std::array kManager = {16, 32, 48, 64, 128, 256, 1024, 24};
    const int manager = kManager[static_cast<std::size_t>(number(draw, 12)) % kManager.size()];
    std::vector<NamedBlockSizes> backends;
    for (int i = 0; i < number(draw, 13) % 4; ++i) {
      backends.push_back({std::string(1, static_cast<char>('A' + i)),
                          drawn_sizes(draw, 4 * static_cast<std::size_t>(i))});
    }
    const auto all_take = [&](int size) {
      return std::all_of(backends.begin(), backends.end(),
                         [size](const NamedBlockSizes& b) { return takes(b.sizes, size); });
    };
    std::string expected;
    for (int size = 1; size <= manager; ++size) {  // the last that fits is the largest
      const bool plain = std::any_of(backends.begin(), backends.end(), [size](const auto& b) {
        return contains(b.sizes, BlockSize{size});
      });
      const bool candidate = size == manager || (plain && manager % size == 0);
      if (candidate && all_take(size)) expected = std::to_string(size);
    }
    if (expected.empty()) {
      std::string lists;
      for (const NamedBlockSizes& backend : backends) {
        lists += lists.empty() ? "" : "; ";
        lists += backend.name + ": [";
        for (std::size_t i = 0; i < backend.sizes.size(); ++i) {
          const BlockSize entry = backend.sizes[i];
          lists += fmt::format("{}{}", i == 0 ? "" : ", ",
                               entry.multiples ? fmt::format("MultipleOf({})", entry.size)
                                               : std::to_string(entry.size));
        }
        lists += "]";
      }
      expected = fmt::format("ValueError: No common block size for {} ({}).", manager, lists);
    }
    const std::string actual = common_or_error(manager, backends);
    expect_that(actual == expected, fmt::format("{}, expected {}", actual, expected));
  });
}

using Declared = std::vector<std::optional<CacheLayouts>>;

Declared drawn_layouts(const CaseDraw& draw) {
  Declared declared;
  std::size_t next = 1;
  for (int i = 0; i < number(draw, 0) % 5; ++i) {
    const int length = number(draw, next++) % 5;
    if (length == 4) {
      declared.emplace_back();
      continue;
    }
    CacheLayouts layouts;
    for (int j = 0; j <= length; ++j) {
      const auto layout = static_cast<CacheLayout>(number(draw, next++) % kNumCacheLayouts);
      if (!contains(layouts, layout)) {
        layouts.push_back(layout);
      }
    }
    declared.push_back(layouts);
  }
  return declared;
}

CacheLayouts written_common_layouts(const Declared& declared) {
  using enum CacheLayout;
  std::vector<CacheLayouts> given;
  for (const auto& layouts : declared) {
    if (layouts) given.push_back(*layouts);
  }
  if (given.empty()) return {kLBNHC, kLBHNC, kBLNHC, kBLHNC, kBHLNC, kLHBNC};
  bool equal = true;
  for (const CacheLayouts& layouts : given) equal = equal && layouts == given[0];
  if (equal) return given[0];
  CacheLayouts common;
  for (int votes = static_cast<int>(given.size()); votes >= 0; --votes) {
    for (const CacheLayout layout : {kLBHNC, kLBNHC, kLHBNC, kBLHNC, kBLNHC, kBHLNC}) {
      int holders = 0;
      int voters = 0;
      for (const CacheLayouts& layouts : given) {
        holders += contains(layouts, layout) ? 1 : 0;
        voters += layouts.front() == layout ? 1 : 0;
      }
      if (holders == static_cast<int>(given.size()) && voters == votes) common.push_back(layout);
    }
  }
  return common;
}

TEST(CacheLayouts, CommonOnesAreThoseOfAllByVotes) {
  for_all_cases([](const CaseDraw& draw) {
    const Declared declared = drawn_layouts(draw);
    const CacheLayouts expected = written_common_layouts(declared);
    CacheLayouts actual;
    try {
      actual = common_cache_layouts(declared);
    } catch (const VllmError& error) {
      expect_that(std::string(error.what()).starts_with("No KV cache layout satisfies every"),
                  error.what());
    }
    expect_that(actual == expected,
                fmt::format("{} layouts, expected {}", actual.size(), expected.size()));
  });
}

TEST(DeviceCapability, IsATotalOrderOfPairs) {
  for_all_cases([](const CaseDraw& draw) {
    const auto drawn = [&](std::size_t i) {
      return DeviceCapability{number(draw, 2 * i) % 14, number(draw, 2 * i + 1) % 14};
    };
    const DeviceCapability a = drawn(0);
    const DeviceCapability b = drawn(1);
    const DeviceCapability c = drawn(2);
    expect_that((a < b) + (a == b) + (a > b) == 1, "not exactly one of <, ==, >");
    expect_that((a < b) == (b > a) && (a <= b) == !(b < a), "not antisymmetric");
    expect_that(!(a <= b && b <= c) || a <= c, "not transitive");
    // 9.10 lies above 9.9 and below 10.0, which neither 9.10 as a number nor 10 * 9 + 10 says.
    expect_that((a < b) == (a.major != b.major ? a.major < b.major : a.minor < b.minor),
                "not by pairs");
    const SelectorFacts facts = {Platform::kCuda, a, {}};
    expect_that(facts.at_least(b.major, b.minor) == (a >= b), "at_least");
    expect_that(facts.is(b.major, b.minor) == (a == b), "is");
  });
}

TEST(DeviceCapability, OfAGcnArchIsItsDigits) {
  for_all_cases([](const CaseDraw& draw) {
    const int major = 1 + number(draw, 0) % 99;
    const int minor = number(draw, 1) % 10;
    constexpr std::array kSteps = {"0", "2", "a", "c", "9"};
    const std::string step = kSteps[static_cast<std::size_t>(number(draw, 2)) % kSteps.size()];
    const bool long_form = major >= 10;  // two digits of the major need the four-digit form
    const std::string arch =
        fmt::format("gfx{}{}{}", major, minor, long_form && step > "9" ? "0" : step);
    const DeviceCapability read = capability_of_gcn_arch(arch);
    expect_that(read == DeviceCapability{major, minor},
                fmt::format("{} is {}.{}", arch, read.major, read.minor));
  });
}

}  // namespace
}  // namespace attn::property_tests
