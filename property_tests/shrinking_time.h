#pragma once

#include <chrono>

namespace attn::property_tests {

// RapidCheck has no limit on shrinking: when this much time has passed since the first failure,
// every further candidate counts as passed.
inline constexpr std::chrono::seconds kShrinkingTime{30};

}  // namespace attn::property_tests
