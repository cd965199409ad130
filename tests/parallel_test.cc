#include "attn/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "attn/error.h"
#include "tests/scoped_workers.h"

namespace attn {
namespace {

TEST(Workers, AreAtLeastOneByDefault) { EXPECT_GE(num_workers(), 1); }

TEST(Workers, AreAsManyAsWasSet) {
  const ScopedWorkers scope(77);
  EXPECT_EQ(num_workers(), 77);
}

TEST(Workers, AreAtLeastOne) {
  const int before = num_workers();
  for (const int n : {0, -5}) {
    try {
      set_num_workers(n);
      ADD_FAILURE() << n;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "number of workers is " + std::to_string(n) + ", must be at least 1");
    }
  }
  EXPECT_EQ(num_workers(), before);
}

// Every claim with one worker, with two, and with more than this machine may have.
class ParallelFor : public testing::TestWithParam<int> {
 protected:
  const ScopedWorkers scope_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Workers, ParallelFor, testing::Values(1, 2, 8));

TEST_P(ParallelFor, CallsTheBodyOnceForEveryIndex) {
  for (const std::int64_t count : {0, 1, 2, 7, 8, 1000}) {
    // Plain ints: each index has one writer, and the caller reads when all have ended.
    std::vector<int> calls(static_cast<std::size_t>(count), 0);
    parallel_for(count, [&](std::int64_t i, int) { ++calls[static_cast<std::size_t>(i)]; });
    EXPECT_EQ(calls, std::vector<int>(static_cast<std::size_t>(count), 1));
  }
}

TEST_P(ParallelFor, AWorkerIsInRangeAndNeverInUseTwice) {
  std::vector<std::atomic<int>> in_use(static_cast<std::size_t>(GetParam()));
  std::atomic<int> wrong = 0;
  parallel_for(2000, [&](std::int64_t, int worker) {
    if (worker < 0 || worker >= GetParam()) {
      ++wrong;
      return;
    }
    auto& mine = in_use[static_cast<std::size_t>(worker)];
    if (mine.fetch_add(1) != 0) ++wrong;
    std::this_thread::yield();
    mine.fetch_sub(1);
  });
  EXPECT_EQ(wrong, 0);
}

// Scratch memory of a worker needs no lock.
TEST_P(ParallelFor, WorkersHaveTheirScratchToThemselves) {
  std::vector<std::int64_t> sums(static_cast<std::size_t>(GetParam()), 0);
  parallel_for(1000,
               [&](std::int64_t i, int worker) { sums[static_cast<std::size_t>(worker)] += i; });
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), std::int64_t{0}), 499500);
}

TEST_P(ParallelFor, BodiesSeeWorkDoneBeforeTheCall) {
  for (int repetition = 0; repetition < 50; ++repetition) {
    auto input = std::make_unique<std::vector<int>>(64, repetition);
    std::vector<int> output(64, -1);
    parallel_for(64, [&](std::int64_t i, int) {
      output[static_cast<std::size_t>(i)] = (*input)[static_cast<std::size_t>(63 - i)];
    });
    input.reset();
    EXPECT_EQ(output, std::vector<int>(64, repetition));
  }
}

TEST_P(ParallelFor, MayBeUsedInsideABody) {
  std::vector<int> calls(20 * 30, 0);
  std::atomic<int> wrong = 0;
  parallel_for(20, [&](std::int64_t i, int outer) {
    std::vector<int> row(30, 0);
    parallel_for(30, [&](std::int64_t j, int inner) {
      if (inner < 0 || inner >= GetParam()) ++wrong;
      ++row[static_cast<std::size_t>(j)];
    });
    if (outer < 0 || outer >= GetParam()) ++wrong;
    for (std::size_t j = 0; j < row.size(); ++j) {
      calls[static_cast<std::size_t>(i) * 30 + j] += row[j];
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(calls, std::vector<int>(20 * 30, 1));
}

TEST_P(ParallelFor, AWorkerStaysInUseWhileItWaitsForANestedCall) {
  std::vector<std::atomic<int>> in_use(static_cast<std::size_t>(GetParam()));
  std::atomic<int> wrong = 0;
  parallel_for(50, [&](std::int64_t, int worker) {
    auto& mine = in_use[static_cast<std::size_t>(worker)];
    if (mine.fetch_add(1) != 0) ++wrong;
    parallel_for(20, [](std::int64_t, int) { std::this_thread::yield(); });
    mine.fetch_sub(1);
  });
  EXPECT_EQ(wrong, 0);
}

TEST_P(ParallelFor, AnExceptionReachesTheCaller) {
  try {
    parallel_for(100, [](std::int64_t i, int) {
      if (i == 57) throw Error("body 57");
    });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "body 57");
  }
}

TEST_P(ParallelFor, RunningBodiesHaveEndedWhenAnExceptionArrives) {
  for (int repetition = 0; repetition < 20; ++repetition) {
    std::vector<int> state(200, 0);  // 0 not begun, 1 running, 2 ended
    EXPECT_THROW(parallel_for(200,
                              [&](std::int64_t i, int) {
                                int& mine = state[static_cast<std::size_t>(i)];
                                mine = 1;
                                std::this_thread::yield();
                                mine = 2;
                                if (i % 50 == 10) throw std::runtime_error("stop");
                              }),
                 std::runtime_error);
    EXPECT_EQ(std::count(state.begin(), state.end(), 1), 0);
    EXPECT_GE(std::count(state.begin(), state.end(), 2), 1);
  }
}

TEST_P(ParallelFor, WorksAfterAnException) {
  EXPECT_THROW(parallel_for(8, [](std::int64_t, int) { throw Error("stop"); }), Error);
  std::atomic<int> calls = 0;
  parallel_for(8, [&](std::int64_t, int) { ++calls; });
  EXPECT_EQ(calls, 8);
}

TEST_P(ParallelFor, MayBeCalledFromSeveralThreads) {
  std::vector<std::vector<int>> calls(4, std::vector<int>(500, 0));
  std::vector<std::thread> threads;
  for (std::vector<int>& mine : calls) {
    threads.emplace_back([&mine] {
      parallel_for(500, [&mine](std::int64_t i, int) { ++mine[static_cast<std::size_t>(i)]; });
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<int>& mine : calls) EXPECT_EQ(mine, std::vector<int>(500, 1));
}

TEST_P(ParallelFor, NeverUsesMoreThreadsThanWorkers) {
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  parallel_for(500, [&](std::int64_t, int) {
    const int now = ++running;
    int seen = most;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    std::this_thread::yield();
    --running;
  });
  EXPECT_LE(most, GetParam());
}

// Every body waits until all run at once; gives up after a minute so that a failure ends.
TEST_P(ParallelFor, UsesAsManyThreadsAsWorkers) {
  std::atomic<int> running = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  parallel_for(GetParam(), [&](std::int64_t, int) {
    ++running;
    while (running < GetParam() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
  });
  EXPECT_LT(std::chrono::steady_clock::now(), deadline);
}

TEST(ParallelForOrder, OneWorkerGoesInOrder) {
  const ScopedWorkers scope(1);
  std::vector<std::int64_t> order;
  parallel_for(5, [&](std::int64_t i, int worker) {
    order.push_back(i);
    EXPECT_EQ(worker, 0);
  });
  EXPECT_EQ(order, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace attn
