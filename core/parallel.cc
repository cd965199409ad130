#include "attn/parallel.h"

#include <fmt/core.h>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <memory>
#include <thread>

#include "attn/error.h"

#if defined(ATTN_ANNOTATE_THREADS)
#include <sanitizer/tsan_interface.h>
#endif

namespace attn {
namespace {

// ThreadSanitizer sees nothing of the scheduler: oneTBB's library is not instrumented, and this
// file is not either (core/CMakeLists.txt), because the half of oneTBB that lies in headers would
// look like races. So the two edges that parallel_for promises are told to it here, and no others:
// what bodies do to each other stays visible.
void annotate_release([[maybe_unused]] void* edge) {
#if defined(ATTN_ANNOTATE_THREADS)
  __tsan_release(edge);
#endif
}
void annotate_acquire([[maybe_unused]] void* edge) {
#if defined(ATTN_ANNOTATE_THREADS)
  __tsan_acquire(edge);
#endif
}

// Also when a body throws.
template <class Action>
struct AtExit {
  Action action;
  ~AtExit() { action(); }
};
template <class Action>
AtExit(Action) -> AtExit<Action>;

std::atomic<int> configured_workers{0};

}  // namespace

int num_workers() {
  const int n = configured_workers.load();
  if (n > 0) return n;
  const unsigned hardware = std::thread::hardware_concurrency();
  return hardware == 0 ? 1 : static_cast<int>(hardware);
}

void set_num_workers(int n) {
  if (n < 1) throw Error(fmt::format("number of workers is {}, must be at least 1", n));
  configured_workers = n;
}

void parallel_for(std::int64_t count, const std::function<void(std::int64_t, int)>& body) {
  const int workers = num_workers();
  if (workers == 1 || count <= 1) {
    for (std::int64_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
  // Allows more threads than the machine has; takes effect with the arena below.
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  static_cast<std::size_t>(workers));
  tbb::task_arena arena(workers);
  char start = 0;
  char end = 0;
  annotate_release(&start);
  const AtExit at_exit{[&] { annotate_acquire(&end); }};
  arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::int64_t>(0, count, 1),
        [&](const tbb::blocked_range<std::int64_t>& range) {
          annotate_acquire(&start);
          const AtExit at_exit_of_bodies{[&] { annotate_release(&end); }};
          const int worker = tbb::this_task_arena::current_thread_index();
          for (std::int64_t i = range.begin(); i != range.end(); ++i) body(i, worker);
        },
        tbb::simple_partitioner());
  });
}

}  // namespace attn
