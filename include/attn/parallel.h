// The one way to use more than one thread.
#pragma once

#include <cstdint>
#include <functional>

namespace attn {

// Threads parallel_for may use, the caller's included: by default the hardware's, at least 1.
int num_workers();

// For the whole process; n >= 1, may exceed the hardware's. Call it while nothing runs in parallel.
void set_num_workers(int n);

// Calls body(i, worker) once for every i in [0, count), in any order, on up to num_workers()
// threads. worker is in [0, num_workers()) and never in use by two bodies at once: an index for
// scratch memory. Work done before the call is visible to every body, work of every body to the
// caller afterwards; nothing else is ordered. An exception of a body reaches the caller after
// running bodies have ended. Bodies must not depend on order, so results are the same for any
// number of workers.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t i, int worker)>& body);

}  // namespace attn
