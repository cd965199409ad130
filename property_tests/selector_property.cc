#include "property_tests/selector_property.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <chrono>
#include <iostream>
#include <optional>
#include <sstream>
#include <utility>

#include "property_tests/replay_line.h"
#include "property_tests/shrinking_time.h"

namespace attn::property_tests {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFullSize = 100;

// Departures keep their full range at any size; their number grows with it, to about 30.
rc::Gen<CaseDraw> draws() {
  const auto number = [](int end) { return rc::gen::resize(kFullSize, rc::gen::inRange(0, end)); };
  // A field of the request is drawn three times as often as another.
  const auto departure =
      rc::gen::map(rc::gen::pair(number(num_fields() + 2 * num_request_fields()), number(1000)),
                   [](std::pair<int, int> drawn) {
                     const auto [field, value] = drawn;
                     const int beyond = field - num_fields();
                     return Departure{beyond < 0 ? field : beyond % num_request_fields(), value};
                   });
  const auto departures =
      rc::gen::scale(0.3, rc::gen::container<std::vector<Departure>>(departure));
  return rc::gen::map(rc::gen::pair(number(num_common_cases()), departures),
                      [](std::pair<int, std::vector<Departure>> drawn) {
                        return CaseDraw{drawn.first, std::move(drawn.second)};
                      });
}

}  // namespace

void expect_none(std::string_view claim, const std::string& difference) {
  if (!difference.empty()) RC_FAIL(fmt::format("{}: {}", claim, difference));
}

void expect_that(bool holds, std::string_view claim) {
  if (!holds) RC_FAIL(std::string(claim));
}

void for_all_cases(const std::function<void(const CaseDraw&)>& holds) {
  std::string smallest;
  std::optional<Clock::time_point> first_failure;
  const auto run = [&, cases = draws()] {
    const CaseDraw draw = *cases;
    if (first_failure && Clock::now() - *first_failure > kShrinkingTime) return;
    try {
      holds(draw);
    } catch (...) {
      if (!first_failure) first_failure = Clock::now();
      smallest = to_string(draw);
      throw;
    }
  };
  rc::detail::TestMetadata metadata;
  metadata.id = test_name();
  metadata.description = metadata.id;
  const auto result = rc::detail::checkTestable(run, metadata);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  if (!result.is<rc::detail::SuccessResult>()) {
    ADD_FAILURE() << message.str() << "\n" << replay_line(smallest);
  } else {
    std::cout << message.str() << "\n";
  }
}

}  // namespace attn::property_tests
