// Bodies that race: planted_race [memmove]. ThreadSanitizer has to report it: the annotations and
// the suppression that keep correct programs quiet must hide nothing that bodies do to each other.
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>

#include "attn/parallel.h"

int main(int argc, char**) {
  constexpr int kWorkers = 8;
  attn::set_num_workers(kWorkers);
  // All bodies run at once; a relaxed counter orders nothing between them.
  std::atomic<int> running = 0;
  std::array<int, 64> shared = {};
  attn::parallel_for(kWorkers, [&](std::int64_t i, int) {
    running.fetch_add(1, std::memory_order_relaxed);
    while (running.load(std::memory_order_relaxed) < kWorkers) std::this_thread::yield();
    if (argc > 1) {
      // Through a pointer, or the compiler writes inline what the sanitizer cannot see.
      void* (*volatile move)(void*, const void*, std::size_t) = std::memmove;
      const std::array<int, 64> mine = {static_cast<int>(i)};
      move(shared.data(), mine.data(), sizeof mine);
    } else {
      ++shared[0];
    }
  });
  std::printf("%d\n", shared[0]);
  return 0;
}
