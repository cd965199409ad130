// How a property is checked: one GoogleTest per claim and backend, one RapidCheck run each.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "property_tests/answer.h"
#include "property_tests/generators.h"

namespace attn::property_tests {

// Backends that every property is checked for, by name.
std::vector<std::string> backends_under_test();
const Backend& backend_under_test(std::string_view name);

// The running case fails unless `difference` is empty; `claim` says what was compared.
void expect_none(std::string_view claim, const std::string& difference);
void expect_that(bool holds, std::string_view claim);

class PropertyTest : public testing::TestWithParam<std::string> {
 protected:
  const Backend& backend() const { return backend_under_test(GetParam()); }

  Answer answer(const LogicalProblem& problem, const MemoryForm& form = {}) const {
    return property_tests::answer(backend(), problem, form);
  }

  // Checks `holds` for configs of the space. A property is a function of one config: whatever else
  // it draws, it draws from the config's seed, so that one line replays it. Failures go through
  // expect_none, expect_that or any exception; EXPECT_* would not fail the case. Configs that the
  // backend does not support are passed over; fails when they are the most.
  void for_all(const ConfigSpace& space,
               const std::function<void(const ProblemConfig& config)>& holds) const;
};

inline std::string backend_name(const testing::TestParamInfo<std::string>& info) {
  return info.param;
}

}  // namespace attn::property_tests
