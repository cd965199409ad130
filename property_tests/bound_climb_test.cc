// No climb passes the bound. ATTN_CLIMB_STEPS is the number of problems a contract.
#include "property_tests/bound_climb.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <tuple>

#include "attn/arithmetic.h"
#include "attn/random.h"
#include "property_tests/drawn_contract.h"

namespace attn::property_tests {
namespace {

constexpr int kDrawnContracts = 13;

int steps() {
  const char* text = std::getenv("ATTN_CLIMB_STEPS");
  return text != nullptr ? std::atoi(text) : 300;
}

void expect_below_one(const PrecisionContract& contract, std::uint64_t seed) {
  const ClimbResult result = climb(contract, seed, steps());
  for (const auto& [largest, where] : {std::tie(result.largest_out, result.where_out),
                                       std::tie(result.largest_lse, result.where_lse)}) {
    EXPECT_GT(largest, 0.001);  // it climbs
    EXPECT_LE(largest, 1.0) << contract.name << " " << contract.overrides << ": " << where;
  }
  std::cout << fmt::format("{:<14} {} largest error/bound: out {:.4f}, lse {:.4f}\n", contract.name,
                           contract.overrides, result.largest_out, result.largest_lse);
}

TEST(BoundClimb, StaysBelowTheBoundOfEveryNamedContract) {
  std::uint64_t seed = 0;
  for (const std::string_view name : contract_names()) {
    expect_below_one({std::string(name)}, derived_seed(1, seed++));
  }
}

TEST(BoundClimb, StaysBelowTheBoundOfDrawnContracts) {
  for (std::uint64_t i = 0; i < kDrawnContracts; ++i) {
    expect_below_one(draw_contract(derived_seed(2, i)), derived_seed(3, i));
  }
}

}  // namespace
}  // namespace attn::property_tests
