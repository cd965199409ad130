#include "property_tests/replay_line.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck/detail/Configuration.h>

#include <cerrno>  // program_invocation_short_name, which only glibc has

namespace attn::property_tests {

std::string test_name() {
  const testing::TestInfo& info = *testing::UnitTest::GetInstance()->current_test_info();
  return fmt::format("{}.{}", info.test_suite_name(), info.name());
}

std::string replay_line(const std::string& smallest) {
  const rc::detail::TestParams& params = rc::detail::configuration().testParams;
  return fmt::format(
      "replay: RC_PARAMS=\"seed={} max_success={} max_size={}\" {} --gtest_filter={}{}{}",
      params.seed, params.maxSuccess, params.maxSize, program_invocation_short_name, test_name(),
      smallest.empty() ? "" : " # ", smallest);
}

}  // namespace attn::property_tests
