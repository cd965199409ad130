// The partition of a request's keys that an exec asks for.
#pragma once

#include <cstdint>

#include "attn/operation.h"

namespace attn::cpu {

// Splits, chunks and a common prefix cut [0, seq_len) into contiguous parts. (Context parallelism
// would not; this backend does not honour it.)
class KeyParts {
 public:
  KeyParts(const ExecSpec& exec, std::int64_t seq_len);

  // One past the last key of the part that holds `k`, 0 <= k < seq_len.
  std::int64_t end_of(std::int64_t k) const;

  std::int64_t count() const;

 private:
  std::int64_t seq_len_;
  std::int64_t chunk_;   // >= 1
  std::int64_t prefix_;  // keys of a part before the cut, 0 = no cut
};

}  // namespace attn::cpu
