// How a property of any operation is checked, for each of the float64 references.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "attn/backend.h"
#include "property_tests/latent_config.h"
#include "property_tests/operation_answer.h"
#include "property_tests/other_config.h"
#include "property_tests/problem_config.h"

namespace attn::property_tests {

// REFERENCE and SECOND_REFERENCE: they answer every operation.
const Backend& reference_backend();
const Backend& second_reference_backend();
std::vector<std::string> reference_names();

// Fails the running case.
void require(bool holds, std::string_view claim);
void require_none(std::string_view claim, const std::string& difference);

// Checks `holds` for random configs: max_success of RC_PARAMS times `percent`. A property is a
// function of one config, whose line replays it. Failures go through require or any exception.
//
// Config is one of ProblemConfig (everything that attention has), DifferentialConfig, LatentConfig,
// SparseConfig, IndexerConfig, MergeConfig, CacheWriteConfig and LatentWriteConfig.
template <class Config>
void for_all(const std::function<void(const Config& config)>& holds, int percent = 100);

// As for_all, for finite values only.
template <class Config>
void for_all_finite(const std::function<void(const Config& config)>& holds, int percent = 100) {
  for_all<Config>(
      [&](Config config) {
        if constexpr (std::is_same_v<Config, SparseConfig>) {
          config.mla.specials = false;
        } else {
          config.specials = false;
        }
        holds(config);
      },
      percent);
}

class OperationProperty : public testing::TestWithParam<std::string> {
 protected:
  const Backend& backend() const;

  Tensors answer(const Operation& operation) const {
    return answer_operation(backend(), operation);
  }

  // Two ways of asking for one exact answer: within twice the alarm of `a` (drift_alarm.h).
  void expect_close(const Operation& a, const Operation& b) const;
  void expect_same_bits(const Operation& a, const Operation& b) const;
};

inline std::string reference_name(const testing::TestParamInfo<std::string>& info) {
  return info.param;
}

}  // namespace attn::property_tests
