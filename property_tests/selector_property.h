// How a property of selection is checked: one GoogleTest per claim, one RapidCheck run each.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "property_tests/selector_case.h"

namespace attn::property_tests {

// The running case fails unless `difference` is empty; `claim` says what was compared.
void expect_none(std::string_view claim, const std::string& difference);
void expect_that(bool holds, std::string_view claim);

// Checks `holds` for drawn cases, with whatever RC_PARAMS says. Failures go through expect_none,
// expect_that or any exception; EXPECT_* would not fail the case.
void for_all_cases(const std::function<void(const CaseDraw& draw)>& holds);

}  // namespace attn::property_tests
