// The optimized CPU backend: tiles, online softmax in float32, threads.
#pragma once

#include <memory>

#include "attn/backend.h"

namespace attn {

// Backend `CPU`. Answers out and lse in F32, the same bits for any number of threads and, for a
// request, in any batch.
std::unique_ptr<Backend> make_cpu_backend();

}  // namespace attn
