// Another number of workers for one scope of a test.
#pragma once

#include "attn/parallel.h"

namespace attn {

class ScopedWorkers {
 public:
  explicit ScopedWorkers(int n) : before_(num_workers()) { set_num_workers(n); }
  ~ScopedWorkers() { set_num_workers(before_); }
  ScopedWorkers(const ScopedWorkers&) = delete;
  ScopedWorkers& operator=(const ScopedWorkers&) = delete;

 private:
  int before_;
};

}  // namespace attn
