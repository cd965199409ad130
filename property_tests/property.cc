#include "property_tests/property.h"

#include <fmt/core.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include "attn/cpu_backend.h"
#include "attn/error.h"
#include "attn/reference.h"
#include "property_tests/replay_line.h"
#include "property_tests/shrinking_time.h"
#include "tests/scoped_workers.h"

namespace attn::property_tests {
namespace {

using Clock = std::chrono::steady_clock;

const std::vector<std::unique_ptr<Backend>>& backends() {
  static const std::vector<std::unique_ptr<Backend>> kBackends = [] {
    std::vector<std::unique_ptr<Backend>> list;
    list.push_back(make_reference_backend());
    list.push_back(make_cpu_backend());
    return list;
  }();
  return kBackends;
}

// Runs the cases of one property and keeps the smallest that failed: shrinking only ever moves from
// a failing case to a failing one.
class Runner {
 public:
  Runner(rc::Gen<ProblemConfig> configs, const std::function<void(const ProblemConfig&)>& holds)
      : configs_(std::move(configs)), holds_(holds) {}

  void operator()() {
    const ProblemConfig config = *configs_;
    if (first_failure_ && Clock::now() - *first_failure_ > kShrinkingTime) return;
    classify(config);
    ++drawn_;
    try {
      holds_(config);
      ++answered_;
    } catch (const Unsupported& reasons) {
      RC_TAG("unsupported");
      unsupported_ = reasons.what();
    } catch (...) {
      if (!first_failure_) first_failure_ = Clock::now();
      smallest_ = to_string(config);
      throw;
    }
  }

  const std::string& smallest() const { return smallest_; }
  bool mostly_unsupported() const { return 2 * answered_ < drawn_; }
  const std::string& unsupported() const { return unsupported_; }

 private:
  rc::Gen<ProblemConfig> configs_;
  const std::function<void(const ProblemConfig&)>& holds_;
  int drawn_ = 0;
  int answered_ = 0;
  std::string unsupported_;
  std::optional<Clock::time_point> first_failure_;
  std::string smallest_;
};

}  // namespace

std::vector<std::string> backends_under_test() {
  std::vector<std::string> names;
  for (const auto& backend : backends()) names.emplace_back(backend->name());
  return names;
}

const Backend& backend_under_test(std::string_view name) {
  for (const auto& backend : backends()) {
    if (backend->name() == name) return *backend;
  }
  throw Error(fmt::format("no backend {}", name));
}

void expect_none(std::string_view claim, const std::string& difference) {
  if (!difference.empty()) RC_FAIL(fmt::format("{}: {}", claim, difference));
}

void expect_that(bool holds, std::string_view claim) {
  if (!holds) RC_FAIL(std::string(claim));
}

void PropertyTest::for_all(const ConfigSpace& space,
                           const std::function<void(const ProblemConfig&)>& holds) const {
  // The problems are small, and one worker meets its own leavings in its scratch memory.
  const ScopedWorkers one_worker(1);
  Runner runner(problem_configs(space), holds);
  rc::detail::TestMetadata metadata;
  metadata.id = test_name();
  metadata.description = metadata.id;
  const auto result = rc::detail::checkTestable([&runner] { runner(); }, metadata);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  if (!result.is<rc::detail::SuccessResult>()) {
    ADD_FAILURE() << message.str() << "\n" << replay_line(runner.smallest());
  } else if (runner.mostly_unsupported()) {
    ADD_FAILURE() << "most configs are not supported, the last because of: "
                  << runner.unsupported();
  } else {
    std::cout << message.str() << "\n";
  }
}

}  // namespace attn::property_tests
